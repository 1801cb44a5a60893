package job

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

func TestSelector(t *testing.T) {
	t.Parallel()
	node := map[string]string{"zone": "a", "disk": "ssd", "gpu": "", "node": "höst 1", "rack": "12"}
	for name, c := range map[string]struct {
		text, canonical string
		matches         bool
	}{
		"nothing":                         {"", "", true},
		"white space":                     {" \t\n", "", true},
		"a value":                         {"zone=a", "zone=a", true},
		"a value, two signs":              {"zone == a", "zone=a", true},
		"another value":                   {"zone=b", "zone=b", false},
		"a value of a label it lacks":     {"arch=a", "arch=a", false},
		"not a value":                     {"zone!=a", "zone!=a", false},
		"not another value":               {"zone != b", "zone!=b", true},
		"not a value of one it lacks":     {"arch!=arm", "arch!=arm", true},
		"one of":                          {"zone in (b, a)", "zone in (a,b)", true},
		"one of, without spaces":          {"zone in(b,a)", "zone in (a,b)", true},
		"one of others":                   {"zone in (b,c)", "zone in (b,c)", false},
		"one of one":                      {"zone in (a)", "zone=a", true},
		"one of the same twice":           {"zone in (a,a)", "zone=a", true},
		"none of":                         {"zone notin (c,b)", "zone notin (b,c)", true},
		"none of, and it is one":          {"zone notin (a,b)", "zone notin (a,b)", false},
		"none of one":                     {"zone notin (a)", "zone!=a", false},
		"none of, of one it lacks":        {"arch notin (a,b)", "arch notin (a,b)", true},
		"it has":                          {"gpu", "gpu", true},
		"it has not":                      {"!gpu", "!gpu", false},
		"it has not, and lacks it":        {"! tpu", "!tpu", true},
		"it has one that it lacks":        {"tpu", "tpu", false},
		"several":                         {"zone in (a,b), !tpu, disk=ssd", "disk=ssd,!tpu,zone in (a,b)", true},
		"several, and one fails":          {"zone in (a,b),!gpu", "!gpu,zone in (a,b)", false},
		"the same twice":                  {"gpu,gpu", "gpu", true},
		"a quoted value":                  {`node="höst 1"`, `node="höst 1"`, true},
		"quotes that nobody needs":        {`zone="a"`, "zone=a", true},
		"an empty value":                  {`gpu=""`, `gpu=""`, true},
		"quote and backslash":             {`zone!="a\"\\"`, `zone!="a\"\\"`, true},
		"letters of any script":           {"zone in (höst,東京)", "zone in (höst,東京)", false},
		"labels that look like keywords":  {"in in (in),notin", "in=in,notin", false},
		"a label that begins like one":    {"zone,inner", "inner,zone", false},
		"names with all that they take":   {"a.b/c_d-e", "a.b/c_d-e", false},
		"values with all that they take":  {"zone!=a_b.c-d/e:f@g+h", "zone!=a_b.c-d/e:f@g+h", true},
		"a number":                        {"rack=12", "rack=12", true},
		"white space in all places":       {" zone  in ( a , b ) , ! tpu ", "!tpu,zone in (a,b)", true},
		"a contradiction":                 {"gpu,!gpu", "gpu,!gpu", false},
		"an empty value among others":     {`gpu in (x,"")`, `gpu in ("",x)`, true},
		"a comma in quotes":               {`zone in ("a,b",c)`, `zone in ("a,b",c)`, false},
		"the same value twice, two signs": {"zone=a,zone==a", "zone=a", true},
	} {
		s, err := ParseSelector(c.text)
		if err != nil {
			t.Errorf("%s: %q: %v", name, c.text, err)
			continue
		}

		if s.String() != c.canonical {
			t.Errorf("%s: %q: got %q, want %q", name, c.text, s, c.canonical)
		}

		if got := s.Matches(node); got != c.matches {
			t.Errorf("%s: %q matches: got %t, want %t", name, c.text, got, c.matches)
		}

		if again, err := ParseSelector(s.String()); err != nil || again.String() != s.String() {
			t.Errorf("%s: the canonical text %q reads as %q, %v", name, s, again, err)
		}

		if s.Empty() != (c.canonical == "") {
			t.Errorf("%s: empty: got %t", name, s.Empty())
		}
	}
}

func TestSelectorErrors(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		",":                               `at character 1: found ",", expected the name of a label`,
		"zone=":                           `at character 6: found the end, expected a value ("" for an empty one)`,
		"zone=a b":                        `at character 8: found "b", expected a comma`,
		"zone=a,":                         `at character 8: found the end, expected the name of a label`,
		"zone in a":                       `at character 9: found "a", expected ( and values`,
		"zone in ()":                      `at character 10: found ")", expected a value`,
		"zone in (a":                      `at character 11: found the end, expected a comma or )`,
		"zone in (a b)":                   `at character 12: found "b)", expected a comma or )`,
		"zone > a":                        `at character 6: found "> a", expected a comma, =, !=, in or notin`,
		"zöne=a":                          `at character 2: found "öne=a", expected a comma, =`,
		"!":                               "at character 2: found the end",
		"!zone=a":                         `at character 6: found "=a", expected a comma`,
		"-zone":                           "must begin and end with a letter or digit",
		`zone="a`:                         "a value that ends with a quote",
		`zone="\n"`:                       "a value that ends with a quote",
		"zone=\"\x01\"":                   "control character",
		"zone=\xff":                       "not valid UTF-8",
		"{{.Zone}}":                       `at character 1: found "{{.Zone}}"`,
		strings.Repeat("a", 129):          "at most 128 are allowed",
		"a=" + strings.Repeat("b", 129):   "at most 128 are allowed",
		strings.Repeat("a,", 300):         "at most 512 are allowed",
		terms(MaxTerms + 1):               "at most 32 are allowed",
		"zone=a; rm":                      `at character 7: found "; rm"`,
		"zone in (a,b), this is too long": `found "is too long", expected`,
	} {
		s, err := ParseSelector(text)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %q, %v, want an error with %q", text, s, err, want)
		}
		if !s.Empty() {
			t.Errorf("%q: a selector beside the error", text)
		}
	}

	if _, err := ParseSelector(terms(MaxTerms)); err != nil {
		t.Errorf("as many terms as are taken: %v", err)
	}
}

// terms makes a selector with n different terms.
func terms(n int) string {
	var parts []string
	for i := range n {
		parts = append(parts, "l"+string(rune('a'+i/26))+string(rune('a'+i%26)))
	}
	return strings.Join(parts, ",")
}

func TestPlaceOfADefinition(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spec Spec
		want string
	}{
		"neither":              {Spec{}, ""},
		"a selector":           {Spec{Selector: "b, a"}, "a,b"},
		"a handler":            {Spec{Handler: "mail/send"}, "handler/mail/send"},
		"both":                 {Spec{Selector: "zone=a,gpu", Handler: "mail"}, "gpu,handler/mail,zone=a"},
		"the handler twice":    {Spec{Selector: "handler/mail", Handler: "mail"}, "handler/mail"},
		"not on those with it": {Spec{Selector: "!handler/mail"}, "!handler/mail"},
	} {
		got, err := c.spec.Place()
		if err != nil || got.String() != c.want {
			t.Errorf("%s: got %q, %v, want %q", name, got, err, c.want)
		}
	}

	web := WithHandlers(map[string]string{LabelOnly: "handlers", "zone": "a"}, []string{"mail"})
	for text, want := range map[string]bool{"": false, "zone=a": false, "handler/mail": true,
		"handler/mail,zone=b": false, "!handler/x": false, "handler/x": false} {
		s, _ := ParseSelector(text)
		if got := s.Takes(web); got != want {
			t.Errorf("a node for handlers only takes %q: got %t, want %t", text, got, want)
		}
	}
}

func TestNodeLabels(t *testing.T) {
	t.Parallel()
	many := map[string]string{}
	for _, k := range strings.Split(terms(MaxNodeLabels+1), ",") {
		many[k] = ""
	}

	for name, c := range map[string]struct {
		labels map[string]string
		want   string // of the error, "" for none
	}{
		"none":               {nil, ""},
		"good ones":          {map[string]string{"zone": "a", "tier": "höst 1", "gpu": ""}, ""},
		"an empty name":      {map[string]string{"": "a"}, "the name is empty"},
		"a name with spaces": {map[string]string{"a b": "a"}, `the name "a b" contains other characters`},
		"the node's":         {map[string]string{"node": "a"}, "node is set by the node itself"},
		"a handler's":        {map[string]string{"handler/x": ""}, "handler/x is set by the node itself"},
		"a control":          {map[string]string{"zone": "\n"}, "the value of zone"},
		"a long value": {
			map[string]string{"zone": strings.Repeat("x", MaxLabelValue+1)}, "at most 128 are allowed",
		},
		"too many": {many, "at most 64 are allowed"},
	} {
		err := CheckNodeLabels(c.labels)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
}

// FuzzSelector: any accepted selector reads back as it was written, and matches the same nodes.
func FuzzSelector(f *testing.F) {
	for _, s := range []string{"zone in (a,b), !gpu", `a="\"\\",b!=c,d notin (e)`, "in in (in)", "a==b",
		`x in ("",y)`} {
		f.Add(s, "zone", "a")
	}

	f.Fuzz(func(t *testing.T, text, key, value string) {
		s, err := ParseSelector(text)
		if err != nil {
			return
		}
		again, err := ParseSelector(s.String())
		if err != nil || again.String() != s.String() {
			t.Fatalf("%q: canonical %q reads as %q, %v", text, s, again, err)
		}
		labels := map[string]string{key: value}
		if s.Matches(labels) != again.Matches(labels) {
			t.Fatalf("%q and %q do not match the same", text, s)
		}
		parts := slices.Clone(s.terms)
		slices.Reverse(parts)
		if (Selector{terms: parts}).Matches(labels) != s.Matches(maps.Clone(labels)) {
			t.Fatalf("%q: the order of terms matters", text)
		}
	})
}
