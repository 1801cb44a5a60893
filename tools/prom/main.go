// Command prom checks the files for Prometheus and Grafana in deploy/ with the parser and the
// engine of Prometheus itself:
//
//	prom METRICS ALERTS TESTS DASHBOARD
//
// METRICS is a node's answer at /metrics. It must contain every metric in a rule or a panel, with
// the labels that the query uses. Every rule must have a test, and pass it. TESTS has the format of
// promtool test rules.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/template"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
	"go.yaml.in/yaml/v3"
)

var grammar = parser.NewParser(parser.Options{})

func main() {
	if len(os.Args) != 5 {
		fmt.Fprintln(os.Stderr, "usage: prom METRICS ALERTS TESTS DASHBOARD")
		os.Exit(2)
	}

	c := &checker{known: map[string]map[string]bool{}}
	c.metrics(os.Args[1])
	rules := c.rules(os.Args[2])
	c.tests(os.Args[3], rules)
	c.dashboard(os.Args[4])
	if c.bad > 0 {
		os.Exit(1)
	}

	fmt.Printf("%d metrics, %d rules, %d cases, %d queries\n", len(c.known), len(rules), c.cases, c.queries)
}

type checker struct {
	known               map[string]map[string]bool // labels by the name of the series
	bad, cases, queries int
}

func (c *checker) wrong(format string, args ...any) {
	c.bad++
	fmt.Fprintf(os.Stderr, format+"\n", args...)
}

func (c *checker) read(path string) []byte {
	b, err := os.ReadFile(path)
	if err != nil {
		c.wrong("%v", err)
	}
	return b
}

// metrics reads the known series. Prometheus itself adds the series about a scrape.
func (c *checker) metrics(path string) {
	p := expfmt.NewTextParser(model.LegacyValidation)
	families, err := p.TextToMetricFamilies(bytes.NewReader(c.read(path)))
	if err != nil {
		c.wrong("%s: %v", path, err)
	}

	learn := func(name string, m *dto.Metric, more ...string) {
		if c.known[name] == nil {
			c.known[name] = map[string]bool{"instance": true, "job": true}
		}

		for _, l := range m.GetLabel() {
			c.known[name][l.GetName()] = true
		}

		for _, l := range more {
			c.known[name][l] = true
		}
	}

	for name, f := range families {
		for _, m := range f.GetMetric() {
			learn(name, m)
			if f.GetType() == dto.MetricType_HISTOGRAM {
				learn(name+"_bucket", m, "le")
				learn(name+"_sum", m)
				learn(name+"_count", m)
			}
		}
	}

	learn("up", &dto.Metric{})
}

// query checks that a query is valid and uses only known series.
func (c *checker) query(where, text string) {
	c.queries++

	e, err := grammar.ParseExpr(text)
	if err != nil {
		c.wrong("%s: %s: %v", where, text, err)
		return
	}

	parser.Inspect(e, func(n parser.Node, _ []parser.Node) error {
		s, ok := n.(*parser.VectorSelector)
		if !ok {
			return nil
		}

		has := c.known[s.Name]
		if has == nil {
			c.wrong("%s: no node has %s", where, s.Name)
			return nil
		}

		for _, m := range s.LabelMatchers {
			if m.Name != labels.MetricName && !has[m.Name] {
				c.wrong("%s: %s has no label %s", where, s.Name, m.Name)
			}
		}

		return nil
	})
}

// rules reads and checks the alerting rules.
func (c *checker) rules(path string) map[string]rulefmt.Rule {
	groups, errs := rulefmt.Parse(c.read(path), false, model.LegacyValidation, grammar, slog.Default())
	for _, err := range errs {
		c.wrong("%s: %v", path, err)
	}

	out := map[string]rulefmt.Rule{}
	if groups == nil {
		return out
	}

	for _, g := range groups.Groups {
		for _, r := range g.Rules {
			if _, twice := out[r.Alert]; twice || r.Alert == "" {
				c.wrong("%s: rule %q: want a name of its own", path, r.Alert)
			}
			if r.Annotations["summary"] == "" || r.Annotations["description"] == "" || r.Labels["severity"] == "" {
				c.wrong("%s: %s: want a summary, a description, and a severity", path, r.Alert)
			}
			out[r.Alert] = r
			c.query(r.Alert, r.Expr)
		}
	}

	return out
}

type testFile struct {
	RuleFiles []string       `yaml:"rule_files"`
	Interval  model.Duration `yaml:"evaluation_interval"`
	Tests     []testCase     `yaml:"tests"`
}

type testCase struct {
	Name     string         `yaml:"name"`
	Interval model.Duration `yaml:"interval"`
	Series   []struct {
		Series string `yaml:"series"`
		Values string `yaml:"values"`
	} `yaml:"input_series"`
	Alerts []struct {
		At   model.Duration `yaml:"eval_time"`
		Name string         `yaml:"alertname"`
		Want []expected     `yaml:"exp_alerts"`
	} `yaml:"alert_rule_test"`
}

type expected struct {
	Labels      map[string]string `yaml:"exp_labels"`
	Annotations map[string]string `yaml:"exp_annotations"`
}

func (c *checker) tests(path string, rules map[string]rulefmt.Rule) {
	var f testFile
	d := yaml.NewDecoder(bytes.NewReader(c.read(path)))
	d.KnownFields(true)
	if err := d.Decode(&f); err != nil {
		c.wrong("%s: %v", path, err)
		return
	}

	fired := map[string]bool{}
	for _, t := range f.Tests {
		series := c.series(t)
		for _, a := range t.Alerts {
			c.cases++

			r, ok := rules[a.Name]
			if !ok {
				c.wrong("%s: there is no alert %s", t.Name, a.Name)
				continue
			}

			fired[a.Name] = fired[a.Name] || len(a.Want) > 0
			got := c.firing(r, series, time.Duration(f.Interval), time.Duration(a.At))
			slices.SortFunc(a.Want, func(x, y expected) int {
				return strings.Compare(fmt.Sprint(x.Labels), fmt.Sprint(y.Labels))
			})
			if g, w := fmt.Sprintf("%q", got), fmt.Sprintf("%q", a.Want); g != w && len(got)+len(a.Want) > 0 {
				c.wrong("%s: %s at %s:\ngot  %s\nwant %s", t.Name, a.Name, a.At, g, w)
			}
		}
	}

	for _, name := range slices.Sorted(maps.Keys(rules)) {
		if !fired[name] {
			c.wrong("%s: nothing shows that %s ever fires", path, name)
		}
	}
}

// sample is a value of a series.
type sample struct {
	t int64
	v float64
	h *histogram.FloatHistogram // nil: it is v
}

func (s sample) ST() int64                     { return 0 }
func (s sample) T() int64                      { return s.t }
func (s sample) F() float64                    { return s.v }
func (s sample) H() *histogram.Histogram       { return nil }
func (s sample) FH() *histogram.FloatHistogram { return s.h }
func (s sample) Copy() chunks.Sample           { return s }

func (s sample) Type() chunkenc.ValueType {
	if s.h != nil {
		return chunkenc.ValFloatHistogram
	}
	return chunkenc.ValFloat
}

// series returns the inputs of a case. All their metrics and labels must be known.
func (c *checker) series(t testCase) (out []storage.Series) {
	for _, in := range t.Series {
		l, values, err := grammar.ParseSeriesDesc(in.Series + " " + in.Values)
		if err != nil {
			c.wrong("%s: %s: %v", t.Name, in.Series, err)
			continue
		}

		c.query(t.Name, in.Series)

		var samples []chunks.Sample
		for i, v := range values {
			if !v.Omitted {
				samples = append(samples, sample{int64(i) * time.Duration(t.Interval).Milliseconds(), v.Value,
					v.Histogram})
			}
		}

		out = append(out, storage.NewListSeries(l, samples))
	}

	return out
}

// stored answers the engine's queries from memory.
type stored []storage.Series

func (s stored) Querier(int64, int64) (storage.Querier, error) {
	query := func(_ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
		return &set{at: -1, series: slices.DeleteFunc(slices.Clone(s), func(x storage.Series) bool {
			return slices.ContainsFunc(matchers,
				func(m *labels.Matcher) bool { return !m.Matches(x.Labels().Get(m.Name)) })
		})}
	}

	return &storage.MockQuerier{SelectMockFunction: query}, nil
}

type set struct {
	series []storage.Series
	at     int
}

func (s *set) Next() bool                        { s.at++; return s.at < len(s.series) }
func (s *set) At() storage.Series                { return s.series[s.at] }
func (s *set) Err() error                        { return nil }
func (s *set) Warnings() annotations.Annotations { return nil }

// firing evaluates a rule from the beginning, as a server does, and returns the alerts that fire at
// an instant.
func (c *checker) firing(r rulefmt.Rule, series []storage.Series, every, at time.Duration) (out []expected) {
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 1 << 20, Timeout: time.Minute,
		LookbackDelta: 5 * time.Minute, EnableAtModifier: true, EnableNegativeOffset: true, Parser: grammar})

	since := map[string]time.Duration{} // when each alert became pending, by its labels
	for t := time.Duration(0); t <= at; t += every {
		q, err := engine.NewInstantQuery(context.Background(), stored(series), nil, r.Expr,
			time.UnixMilli(t.Milliseconds()).UTC())
		if err != nil {
			c.wrong("%s: %v", r.Alert, err)
			return nil
		}

		v, err := q.Exec(context.Background()).Vector()
		if err != nil {
			c.wrong("%s: %v", r.Alert, err)
			return nil
		}

		now := map[string]time.Duration{}
		out = out[:0]
		for _, s := range v {
			l := labels.NewBuilder(s.Metric).Del(labels.MetricName).Labels()
			begun, pending := since[l.String()]
			if !pending {
				begun = t
			}
			now[l.String()] = begun
			if t-begun >= time.Duration(r.For) && t+every > at {
				out = append(out, c.told(r, l, s))
			}
		}

		since = now
	}

	slices.SortFunc(out, func(x, y expected) int { return strings.Compare(fmt.Sprint(x.Labels), fmt.Sprint(y.Labels)) })
	return out
}

// told returns an alert as people see it.
func (c *checker) told(r rulefmt.Rule, l labels.Labels, s promql.Sample) expected {
	out := expected{Labels: l.Map(), Annotations: map[string]string{}}

	expand := func(text string) string {
		defs := "{{$labels := .Labels}}{{$externalLabels := .ExternalLabels}}" +
			"{{$externalURL := .ExternalURL}}{{$value := .Value}}"
		got, err := template.NewTemplateExpander(context.Background(), defs+text, r.Alert,
			template.AlertTemplateData(l.Map(), nil, "", s), 0, nil, nil, nil).Expand()
		if err != nil {
			c.wrong("%s: %v", r.Alert, err)
		}
		return got
	}

	for k, v := range r.Labels {
		out.Labels[k] = expand(v)
	}

	for k, v := range r.Annotations {
		out.Annotations[k] = expand(v)
	}

	return out
}

// Values that replace Grafana's variables in queries.
var variables = strings.NewReplacer("$__rate_interval", "1m", "$__interval", "15s", "$__range", "1h",
	"$instance", ".*", "$job", "go-crontab")

var variable = regexp.MustCompile(`\$\w+`)

// panel is a part of a dashboard; a row contains panels.
type panel struct {
	ID      int            `json:"id"`
	Title   string         `json:"title"`
	Type    string         `json:"type"`
	About   string         `json:"description"`
	Grid    map[string]int `json:"gridPos"`
	Panels  []panel        `json:"panels"`
	Targets []struct {
		Expr string `json:"expr"`
	} `json:"targets"`
}

// dashboard reads the panels and the variables of a dashboard.
func (c *checker) dashboard(path string) {
	var d struct {
		Title      string  `json:"title"`
		UID        string  `json:"uid"`
		Panels     []panel `json:"panels"`
		Templating struct {
			List []struct {
				Name  string `json:"name"`
				Type  string `json:"type"`
				Query any    `json:"query"`
			} `json:"list"`
		} `json:"templating"`
	}
	if err := json.Unmarshal(c.read(path), &d); err != nil {
		c.wrong("%s: %v", path, err)
		return
	}

	if d.Title == "" || d.UID == "" || len(d.Panels) == 0 {
		c.wrong("%s: want a title, a uid, and panels", path)
	}

	ids := map[int]bool{}
	taken := map[[2]int]string{}
	for _, p := range d.Panels {
		for _, p := range append([]panel{p}, p.Panels...) {
			where := "panel " + p.Title
			if ids[p.ID] || p.Title == "" {
				c.wrong("%s: %s: want a title, and an id of its own", path, where)
			}
			ids[p.ID] = true
			if p.Type != "row" && (len(p.Targets) == 0 || p.About == "") {
				c.wrong("%s: %s: want a query, and a description", path, where)
			}

			for x := p.Grid["x"]; x < p.Grid["x"]+p.Grid["w"]; x++ {
				for y := p.Grid["y"]; y < p.Grid["y"]+p.Grid["h"]; y++ {
					if other := taken[[2]int{x, y}]; other != "" || x > 23 {
						c.wrong("%s: %s lies on %s, or beside the page", path, where, other)
					}
					taken[[2]int{x, y}] = p.Title
				}
			}

			for _, t := range p.Targets {
				text := variables.Replace(t.Expr)
				if v := variable.FindString(text); v != "" {
					c.wrong("%s: %s: what is %s?", path, where, v)
				}
				c.query(where, text)
			}
		}
	}

	for _, v := range d.Templating.List {
		q, _ := v.Query.(string)
		if m := regexp.MustCompile(`^label_values\((.*), (\w+)\)$`).FindStringSubmatch(q); m != nil {
			c.query("variable "+v.Name, variables.Replace(m[1]))
		} else if v.Type == "query" {
			c.wrong("%s: variable %s: %q is not understood", path, v.Name, q)
		}
	}
}
