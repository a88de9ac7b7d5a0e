package source

import (
	"cmp"
	"maps"

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

	"github.com/stormglass/stormglass/dashboards"
)

// panel adds methods to a dashboards.Panel that build the panel with the SDK.
type panel struct{ dashboards.Panel }

// asBuilder is a function that implements the SDK's interface for builders.
type asBuilder func() (dashboard.Panel, error)

func (f asBuilder) Build() (dashboard.Panel, error) { return f() }

// builder returns a builder for the panel. The built panel has the panel's kind and the fields that all kinds share.
func (p panel) builder(id uint32) cog.Builder[dashboard.Panel] {
	return asBuilder(func() (dashboard.Panel, error) {
		built, err := p.withoutData()
		if err != nil {
			return built, err
		}
		at := &dashboard.GridPos{X: p.X, Y: p.Y, W: p.W, H: p.H}
		built.Id, built.GridPos, built.Datasource = &id, at, new(chosenSource())
		built.Title = &p.Title
		built.Description = new(p.Tells + "\n\nDo: " + p.Do)
		for _, q := range p.Queries {
			target, err := p.target(q).Build()
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
		f.Min = new(0.0)
		if p.Log {
			f.Min = nil // 0 has no place on a logarithmic axis
			if p.Min != 0 {
				f.Min = &p.Min
			}
		}
		if p.Max != 0 {
			f.Max = &p.Max
		}
		if text := p.NoData(); text != "" {
			f.NoValue = &text
		}
		return built, nil
	})
}

func (p panel) target(q dashboards.Query) cog.Builder[variants.Dataquery] {
	t := prometheus.NewDataqueryBuilder().RefId(q.RefID).Expr(q.Expr).Datasource(chosenSource()).
		EditorMode(prometheus.QueryEditorModeCode).LegendFormat(q.Legend)
	switch p.Kind {
	case "table":
		return t.Format(prometheus.PromQueryFormatTable).Instant()
	case "heatmap":
		return t.Format(prometheus.PromQueryFormatHeatmap).Range()
	}
	return t.Format(prometheus.PromQueryFormatTimeSeries).Range()
}

func (p panel) thresholds() cog.Builder[dashboard.ThresholdsConfig] {
	var steps []dashboard.Threshold
	for _, s := range p.Steps() {
		steps = append(steps, dashboard.Threshold(s))
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

// withoutData builds the panel without queries.
func (p panel) withoutData() (dashboard.Panel, error) {
	switch p.Kind {
	case "stat":
		return stat.NewPanelBuilder().Thresholds(p.thresholds()).ColorScheme(colours(dashboard.FieldColorModeIdThresholds)).
			ReduceOptions(common.NewReduceDataOptionsBuilder().Calcs([]string{cmp.Or(p.Calc, "lastNotNull")})).
			GraphMode(common.BigValueGraphModeArea).ColorMode(common.BigValueColorModeValue).Build()
	case "table":
		b := table.NewPanelBuilder().Thresholds(p.thresholds()).ColorScheme(colours(dashboard.FieldColorModeIdThresholds)).ShowHeader(true).
			Footer(common.NewTableFooterOptionsBuilder().Show(false).CountRows(false).Reducer([]string{"sum"}))
		hidden, renamed := map[string]bool{}, map[string]string{}
		for _, h := range p.Hidden {
			hidden[h] = true
		}
		maps.Copy(renamed, p.Renamed)
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
	if high := p.SoftMax(); high != 0 {
		b.AxisSoftMax(high)
	}
	if p.Stacked {
		b.Stacking(common.NewStackingConfigBuilder().Mode(common.StackingModeNormal).Group("A")).FillOpacity(35)
	}
	style := common.GraphThresholdsStyleModeOff
	if p.DrawsSteps() {
		style = common.GraphThresholdsStyleModeDashed
	}
	return b.ThresholdsStyle(common.NewGraphThresholdsStyleConfigBuilder().Mode(style)).Build()
}
