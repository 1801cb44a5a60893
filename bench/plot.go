package bench

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/wcharczuk/go-chart/v2"
	"github.com/wcharczuk/go-chart/v2/drawing"
)

// Plots draws each result that has a series, as SVG, by the name of a file: fires per second, and the lateness of each
// second.
func Plots(r *Report) map[string][]byte {
	out := map[string][]byte{}
	for i := range r.Results {
		x := &r.Results[i]
		if len(x.Series) < 2 {
			continue
		}
		if svg, err := plot(x); err == nil { // a plot that cannot be drawn has nothing to show
			out[fileName(x.Name())+".svg"] = svg
		}
	}
	return out
}

// fileName makes a name safe for all file systems.
func fileName(name string) string {
	return strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' {
			return c
		}
		return '-'
	}, strings.ToLower(name))
}

func plot(x *Result) ([]byte, error) {
	var at, fires, p50, p99, most []float64
	for _, s := range x.Series {
		at, fires = append(at, s.At), append(fires, float64(s.Fires))
		p50, p99, most = append(p50, s.P50), append(p99, s.P99), append(most, s.Max)
	}
	line := func(name string, y []float64, colour drawing.Color, axis chart.YAxisType) chart.ContinuousSeries {
		return chart.ContinuousSeries{Name: name, XValues: at, YValues: y, YAxis: axis, Style: chart.Style{StrokeColor: colour, StrokeWidth: 2}}
	}
	g := chart.Chart{
		Title: x.Name(), Width: 860, Height: 360,
		Background:     chart.Style{Padding: chart.Box{Top: 56, Left: 16, Right: 16, Bottom: 8}},
		XAxis:          chart.XAxis{Name: "seconds", ValueFormatter: whole},
		YAxis:          chart.YAxis{Name: "lateness, ms"},
		YAxisSecondary: chart.YAxis{Name: "fires per second", ValueFormatter: whole},
		Series: []chart.Series{
			line("fires per second", fires, chart.ColorAlternateGray, chart.YAxisSecondary),
			line("p50", p50, chart.ColorGreen, chart.YAxisPrimary),
			line("p99", p99, chart.ColorBlue, chart.YAxisPrimary),
			line("max", most, chart.ColorRed, chart.YAxisPrimary),
		},
	}
	g.Elements = []chart.Renderable{chart.LegendThin(&g)}
	var b bytes.Buffer
	if err := g.Render(chart.SVG, &b); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

func whole(v any) string {
	f, _ := v.(float64)
	return fmt.Sprintf("%.0f", f)
}
