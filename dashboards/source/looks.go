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

// asBuilder makes a function a builder of the SDK.
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
		built.Title = &p.Title
		built.Description = cog.ToPtr(p.Tells + "\n\nDo: " + p.Do)
		for i, q := range p.Queries {
			target, err := p.target(i, q).Build()
			if err != nil {
				return built, err
			}
			built.Targets = append(built.Targets, target)
		}
		if p.More != "" {
			link, err := linkTo(p.More, "More of this").Build()
			if err != nil {
				return built, err
			}
			built.Links = append(built.Links, link)
		}
		f := &built.FieldConfig.Defaults
		f.Unit = &p.Unit
		f.Min = cog.ToPtr(0.0)
		if p.Log {
			f.Min = nil // 0 has no place on a logarithmic axis
			if p.Min != 0 {
				f.Min = &p.Min
			}
		}
		if p.Max != 0 {
			f.Max = &p.Max
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
	for _, q := range p.Queries {
		if q.reason == nil {
			return ""
		}
	}
	return p.Queries[0].reason.Text
}

func (p panel) target(i int, q query) cog.Builder[variants.Dataquery] {
	t := prometheus.NewDataqueryBuilder().RefId(refID(i)).Expr(q.Expr).Datasource(chosenSource()).
		EditorMode(prometheus.QueryEditorModeCode).LegendFormat(q.Legend)
	switch p.Kind {
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
	case p.Falls:
		steps[0].Color = "red"
		add(p.Warn, "green")
	case p.Kind == "state-timeline":
		steps[0].Color = faint
		if p.Bad != 0 {
			add(p.Bad, "red")
		} else {
			add(1, "blue")
		}
	default:
		add(p.Warn, "orange")
		add(p.Bad, "red")
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
	switch p.Kind {
	case "stat":
		calc := p.Calc
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
		for _, h := range p.Hidden {
			hidden[h] = true
		}
		for from, to := range p.Renamed {
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
			YAxis(heatmap.NewYAxisConfigBuilder().Unit(p.Unit).AxisPlacement(common.AxisPlacementLeft)).
			Build()
	}
	b := timeseries.NewPanelBuilder().Thresholds(p.thresholds()).ColorScheme(colours(dashboard.FieldColorModeIdPaletteClassic)).
		Legend(legend()).Tooltip(tooltip()).LineWidth(1).ShowPoints(common.VisibilityModeAuto).PointSize(4).SpanNulls(common.BoolOrFloat64{Bool: cog.ToPtr(false)})
	scale := common.NewScaleDistributionConfigBuilder().Type(common.ScaleDistributionLinear)
	if p.Log {
		scale = common.NewScaleDistributionConfigBuilder().Type(common.ScaleDistributionLog).Log(10)
	}
	b.ScaleDistribution(scale)
	if p.Unit == "percentunit" && p.Max == 0 && p.Warn != 0 {
		b.AxisSoftMax(p.Warn) // one slow call of a thousand does not fill the panel
	}
	if p.Stacked {
		b.Stacking(common.NewStackingConfigBuilder().Mode(common.StackingModeNormal).Group("A")).FillOpacity(35)
	}
	style := common.GraphThresholdsStyleModeOff
	if p.Warn != 0 || p.Bad != 0 {
		style = common.GraphThresholdsStyleModeDashed
	}
	return b.ThresholdsStyle(common.NewGraphThresholdsStyleConfigBuilder().Mode(style)).Build()
}
