package main

import (
	"bytes"
	"fmt"
	"math"
	"slices"

	"github.com/wcharczuk/go-chart/v2"
	"github.com/wcharczuk/go-chart/v2/drawing"
)

// plot draws a result as SVG: fires per second, and the lateness in each second.
func plot(x *result) ([]byte, error) {
	var at, fires, p50, p99, most []float64
	for _, s := range x.Series {
		at, fires = append(at, s.At), append(fires, float64(s.Fires))
		p50, p99, most = append(p50, s.P50), append(p99, s.P99), append(most, s.Max)
	}

	line := func(name string, y []float64, colour drawing.Color, axis chart.YAxisType) chart.ContinuousSeries {
		return chart.ContinuousSeries{
			Name: name, XValues: at, YValues: y, YAxis: axis, Style: chart.Style{StrokeColor: colour, StrokeWidth: 2},
		}
	}

	series := []chart.ContinuousSeries{
		line("fires per second", fires, chart.ColorAlternateGray, chart.YAxisSecondary),
		line("p50", p50, chart.ColorGreen, chart.YAxisPrimary),
		line("p99", p99, chart.ColorBlue, chart.YAxisPrimary),
		line("max", most, chart.ColorRed, chart.YAxisPrimary),
	}

	g := chart.Chart{
		Width: 860, Height: 360,
		Background: chart.Style{Padding: chart.Box{Top: 48, Left: 16, Right: 16, Bottom: 8}},
		XAxis: chart.XAxis{
			Name: "seconds", Ticks: seconds(at), Range: &chart.ContinuousRange{Min: at[0], Max: at[len(at)-1]},
		},
		YAxis:          chart.YAxis{Name: "lateness, ms", Range: fromZero(most), ValueFormatter: short},
		YAxisSecondary: chart.YAxis{Name: "fires per second", Range: fromZero(fires), ValueFormatter: whole},
		Elements:       []chart.Renderable{heading(x.name(), series)},
	}

	for _, s := range series {
		g.Series = append(g.Series, s)
	}

	var b bytes.Buffer
	if err := g.Render(chart.SVG, &b); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// heading writes the title and the legend. The library's own title is rotated like the text of an
// axis.
func heading(title string, series []chart.ContinuousSeries) chart.Renderable {
	return func(r chart.Renderer, box chart.Box, defaults chart.Style) {
		const base = 24

		r.ClearTextRotation()
		r.SetFont(defaults.GetFont())
		r.SetFontColor(chart.ColorBlack)
		r.SetFontSize(12)
		r.Text(title, box.Left, base)

		r.SetFontSize(9)
		at := box.Right
		for _, s := range slices.Backward(series) {
			at -= r.MeasureText(s.Name).Width()
			r.Text(s.Name, at, base)
			at -= 28

			r.SetStrokeColor(s.Style.StrokeColor)
			r.SetStrokeWidth(3)
			r.MoveTo(at, base-4)
			r.LineTo(at+20, base-4)
			r.Stroke()
			at -= 20
		}
	}
}

// fromZero is the range of an axis. Without one, the library draws a thousand lines if all values
// are equal.
func fromZero(y []float64) chart.Range {
	return &chart.ContinuousRange{Min: 0, Max: 1.1 * max(slices.Max(y), 1)}
}

// seconds marks about ten whole seconds.
func seconds(at []float64) (ticks []chart.Tick) {
	step := max(1, math.Ceil((at[len(at)-1]-at[0])/10))
	last := at[len(at)-1]
	for s := at[0]; s < last; s += step {
		ticks = append(ticks, chart.Tick{Value: s, Label: whole(s)})
	}
	return append(ticks, chart.Tick{Value: last}) // the axis ends at the last mark
}

func short(v any) string {
	if f, _ := v.(float64); f < 100 {
		return fmt.Sprintf("%.3g", f)
	}
	return whole(v)
}

func whole(v any) string {
	f, _ := v.(float64)
	return fmt.Sprintf("%.0f", f)
}
