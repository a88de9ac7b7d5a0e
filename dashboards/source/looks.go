package source

import (
	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/cog/variants"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/heatmap"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	"github.com/grafana/grafana-foundation-sdk/go/statetimeline"
	"github.com/grafana/grafana-foundation-sdk/go/table"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
)

// faint is the colour of a state that is not.
const faint = "rgba(128, 128, 128, 0.15)"

// asBuilder gives a panel that is there already to who wants to build it.
type asBuilder func() (dashboard.Panel, error)

func (f asBuilder) Build() (dashboard.Panel, error) { return f() }

// builder is the panel in its kind, with what all kinds have in common.
func (p panel) builder(id uint32, at dashboard.GridPos) cog.Builder[dashboard.Panel] {
	return asBuilder(func() (dashboard.Panel, error) {
		built, err := p.withoutData()
		if err != nil {
			return built, err
		}
		built.Id, built.GridPos, built.Datasource = &id, &at, cog.ToPtr(chosenSource())
		built.Title = &p.title
		built.Description = cog.ToPtr(p.tells + "\n\nDo: " + p.do)
		for i, q := range p.queries {
			target, err := p.target(i, q).Build()
			if err != nil {
				return built, err
			}
			built.Targets = append(built.Targets, target)
		}
		if p.more != "" {
			link, err := linkTo(p.more, "More of this").Build()
			if err != nil {
				return built, err
			}
			built.Links = append(built.Links, link)
		}
		f := &built.FieldConfig.Defaults
		f.Unit = &p.unit
		f.Min = cog.ToPtr(0.0)
		if p.log {
			f.Min = nil // 0 has no place on a logarithmic axis
			if p.min != 0 {
				f.Min = &p.min
			}
		}
		if p.max != 0 {
			f.Max = &p.max
		}
		if text := p.noDataText(); text != "" {
			f.NoValue = &text
		}
		return built, nil
	})
}

// noDataText returns the text shown when no query has data: the first query's reason,
// if each has one.
func (p panel) noDataText() string {
	for _, q := range p.queries {
		if q.empty == nil {
			return ""
		}
	}
	return p.queries[0].empty.Text
}

func (p panel) target(i int, q query) cog.Builder[variants.Dataquery] {
	t := prometheus.NewDataqueryBuilder().RefId(refID(i)).Expr(abbreviations.Replace(q.expr)).Datasource(chosenSource()).
		EditorMode(prometheus.QueryEditorModeCode).LegendFormat(q.legend)
	switch p.kind {
	case "table":
		return t.Format(prometheus.PromQueryFormatTable).Instant()
	case "heatmap":
		return t.Format(prometheus.PromQueryFormatHeatmap).Range()
	}
	return t.Format(prometheus.PromQueryFormatTimeSeries).Range()
}

// thresholds are green, from warn on orange, from bad on red; of states, off and
// on, which is red where on is bad.
func (p panel) thresholds() cog.Builder[dashboard.ThresholdsConfig] {
	steps := []dashboard.Threshold{{Color: "green"}}
	add := func(at float64, colour string) {
		if at != 0 {
			steps = append(steps, dashboard.Threshold{Value: &at, Color: colour})
		}
	}
	switch {
	case p.falls:
		steps[0].Color = "red"
		add(p.warn, "green")
	case p.kind == "state-timeline":
		steps[0].Color = faint
		if p.bad != 0 {
			add(p.bad, "red")
		} else {
			add(1, "blue")
		}
	default:
		add(p.warn, "orange")
		add(p.bad, "red")
	}
	return dashboard.NewThresholdsConfigBuilder().Mode(dashboard.ThresholdsModeAbsolute).Steps(steps)
}

func legend() *common.VizLegendOptionsBuilder {
	return common.NewVizLegendOptionsBuilder().ShowLegend(true).DisplayMode(common.LegendDisplayModeTable).
		Placement(common.LegendPlacementBottom).Calcs([]string{"max", "lastNotNull"}).SortBy("Max").SortDesc(true)
}

func tooltip() *common.VizTooltipOptionsBuilder {
	return common.NewVizTooltipOptionsBuilder().Mode(common.TooltipDisplayModeMulti).Sort(common.SortOrderDescending)
}

func colours(mode dashboard.FieldColorModeId) *dashboard.FieldColorBuilder {
	return dashboard.NewFieldColorBuilder().Mode(mode)
}

// withoutData returns a panel of its kind without queries.
func (p panel) withoutData() (dashboard.Panel, error) {
	switch p.kind {
	case "stat":
		calc := p.calc
		if calc == "" {
			calc = "lastNotNull"
		}
		return stat.NewPanelBuilder().Thresholds(p.thresholds()).ColorScheme(colours(dashboard.FieldColorModeIdThresholds)).
			ReduceOptions(common.NewReduceDataOptionsBuilder().Calcs([]string{calc})).
			GraphMode(common.BigValueGraphModeArea).ColorMode(common.BigValueColorModeValue).Build()
	case "table":
		b := table.NewPanelBuilder().Thresholds(p.thresholds()).ColorScheme(colours(dashboard.FieldColorModeIdThresholds)).ShowHeader(true).
			Footer(common.NewTableFooterOptionsBuilder().Show(false).CountRows(false).Reducer([]string{"sum"}))
		hidden, renamed := map[string]bool{}, map[string]string{}
		for _, h := range p.hidden {
			hidden[h] = true
		}
		for from, to := range p.renamed {
			renamed[from] = to
		}
		return b.WithTransformation(dashboard.DataTransformerConfig{Id: "organize", Options: map[string]any{
			"excludeByName": hidden, "renameByName": renamed, "indexByName": map[string]int{},
		}}).Build()
	case "state-timeline":
		return statetimeline.NewPanelBuilder().Thresholds(p.thresholds()).ColorScheme(colours(dashboard.FieldColorModeIdThresholds)).
			MergeValues(true).ShowValue(common.VisibilityModeNever).RowHeight(0.8).
			Legend(common.NewVizLegendOptionsBuilder().ShowLegend(false).DisplayMode(common.LegendDisplayModeHidden).
				Placement(common.LegendPlacementBottom).Calcs([]string{})).
			Tooltip(tooltip()).Build()
	case "heatmap":
		return heatmap.NewPanelBuilder().Thresholds(p.thresholds()).Calculate(false).CellGap(1).HideLegend().
			Color(heatmap.NewHeatmapColorOptionsBuilder().Mode(heatmap.HeatmapColorModeScheme).Scheme("Oranges").
				Scale(heatmap.HeatmapColorScaleExponential).Exponent(0.5).Steps(64).Fill("dark-orange")).
			YAxis(heatmap.NewYAxisConfigBuilder().Unit(p.unit).AxisPlacement(common.AxisPlacementLeft)).
			Build()
	}
	b := timeseries.NewPanelBuilder().Thresholds(p.thresholds()).ColorScheme(colours(dashboard.FieldColorModeIdPaletteClassic)).
		Legend(legend()).Tooltip(tooltip()).LineWidth(1).ShowPoints(common.VisibilityModeAuto).PointSize(4).SpanNulls(common.BoolOrFloat64{Bool: cog.ToPtr(false)})
	scale := common.NewScaleDistributionConfigBuilder().Type(common.ScaleDistributionLinear)
	if p.log {
		scale = common.NewScaleDistributionConfigBuilder().Type(common.ScaleDistributionLog).Log(10)
	}
	b.ScaleDistribution(scale)
	if p.unit == "percentunit" && p.max == 0 && p.warn != 0 {
		b.AxisSoftMax(p.warn) // one slow call of a thousand does not fill the panel
	}
	if p.stacked {
		b.Stacking(common.NewStackingConfigBuilder().Mode(common.StackingModeNormal).Group("A")).FillOpacity(35)
	}
	style := common.GraphThresholdsStyleModeOff
	if p.warn != 0 || p.bad != 0 {
		style = common.GraphThresholdsStyleModeDashed
	}
	return b.ThresholdsStyle(common.NewGraphThresholdsStyleConfigBuilder().Mode(style)).Build()
}
