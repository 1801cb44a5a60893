package openapi_test

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	"go-crontab/api/openapi"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
)

type (
	color string
	base  struct {
		ID   string `json:"id" doc:"Its id, such as 'a b' or (in short) 'a', and the owner's."`
		More *base  `json:"more,omitempty"`
	}
	thing struct {
		base
		Color  color             `json:"color"`
		Count  *int              `json:"count"`
		At     *time.Time        `json:"at,omitempty"`
		When   string            `json:"when,omitzero" format:"date"`
		Size   string            `json:"size" enum:"big,small"`
		Names  []string          `json:"names,omitempty"`
		Tags   map[string]string `json:"tags,omitempty"`
		Raw    json.RawMessage   `json:"raw,omitempty"`
		Factor float64           `json:"factor,omitempty"`
		Hidden string            `json:"-"`
		secret string
	}
)

func reflector() *openapi.Reflector {
	return &openapi.Reflector{
		Named: map[reflect.Type]openapi.Named{
			reflect.TypeFor[color](): {Name: "Color", Schema: openapi.Words[color]("red", "green")},
		},
		Name:  func(t reflect.Type) string { return t.Name() },
		Needs: map[reflect.Type][]string{reflect.TypeFor[thing](): {"id"}},
	}
}

func TestSchemas(t *testing.T) {
	t.Parallel()
	_ = thing{}.secret
	for use, want := range map[openapi.Use]string{
		openapi.Answer: `{"Color": {"type": "string", "enum": ["red", "green"]},
			"base": {"type": "object", "properties": {"id": {"type": "string", "description": "Its id, such as ` + "`a b` or (in short) `a`" + `, and the owner's."}, "more": {"$ref": "#/components/schemas/base"}}, "required": ["id"]},
			"thing": {"type": "object", "properties": {
				"id": {"type": "string", "description": "Its id, such as ` + "`a b` or (in short) `a`" + `, and the owner's."}, "more": {"$ref": "#/components/schemas/base"},
				"color": {"$ref": "#/components/schemas/Color"}, "count": {"type": ["integer", "null"]}, "at": {"type": "string", "format": "date-time"},
				"when": {"type": "string", "format": "date"}, "size": {"type": "string", "enum": ["big", "small"]}, "names": {"type": "array", "items": {"type": "string"}},
				"tags": {"type": "object", "additionalProperties": {"type": "string"}}, "raw": {}, "factor": {"type": "number", "format": "double"}},
				"required": ["id", "color", "count", "size"]}}`,
		openapi.Request: `{"Color": {"type": "string", "enum": ["red", "green"]},
			"baseInput": {"type": "object", "properties": {"id": {"type": "string", "description": "Its id, such as ` + "`a b` or (in short) `a`" + `, and the owner's."}, "more": {"$ref": "#/components/schemas/baseInput"}}, "required": ["id"], "additionalProperties": false},
			"thingInput": {"type": "object", "properties": {
				"id": {"type": "string", "description": "Its id, such as ` + "`a b` or (in short) `a`" + `, and the owner's."}, "more": {"$ref": "#/components/schemas/baseInput"},
				"color": {"$ref": "#/components/schemas/Color"}, "count": {"type": "integer"}, "at": {"type": "string", "format": "date-time"},
				"when": {"type": "string", "format": "date"}, "size": {"type": "string", "enum": ["big", "small"]}, "names": {"type": "array", "items": {"type": "string"}},
				"tags": {"type": "object", "additionalProperties": {"type": "string"}}, "raw": {}, "factor": {"type": "number", "format": "double"}},
				"required": ["id"], "additionalProperties": false}}`,
		openapi.Patch: `{"Color": {"type": "string", "enum": ["red", "green"]},
			"basePatch": {"type": "object", "properties": {"id": {"type": ["string", "null"], "description": "Its id, such as ` + "`a b` or (in short) `a`" + `, and the owner's."}, "more": {"anyOf": [{"$ref": "#/components/schemas/basePatch"}, {"type": "null"}]}}, "additionalProperties": false},
			"thingPatch": {"type": "object", "properties": {
				"id": {"type": ["string", "null"], "description": "Its id, such as ` + "`a b` or (in short) `a`" + `, and the owner's."}, "more": {"anyOf": [{"$ref": "#/components/schemas/basePatch"}, {"type": "null"}]},
				"color": {"anyOf": [{"$ref": "#/components/schemas/Color"}, {"type": "null"}]}, "count": {"type": ["integer", "null"]}, "at": {"type": ["string", "null"], "format": "date-time"},
				"when": {"type": ["string", "null"], "format": "date"}, "size": {"type": ["string", "null"], "enum": ["big", "small", null]}, "names": {"type": ["array", "null"], "items": {"type": "string"}},
				"tags": {"type": ["object", "null"], "additionalProperties": {"type": ["string", "null"]}}, "raw": {}, "factor": {"type": ["number", "null"], "format": "double"}},
				"additionalProperties": false}}`,
	} {
		r := reflector()
		ref := r.Of(reflect.TypeFor[*thing](), use)
		text, err := json.Marshal(r.Schemas())
		if err != nil {
			t.Fatal(err)
		}

		var got, wanted any
		if err := json.Unmarshal(text, &got); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal([]byte(want), &wanted); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(wanted, got); diff != "" {
			t.Errorf("use %d, which is %s (-want +got):\n%s", use, ref.Ref, diff)
		}
	}
}

func TestTwoTypesOfOneName(t *testing.T) {
	t.Parallel()
	r := reflector()
	r.Name = func(reflect.Type) string { return "Same" }
	defer func() {
		if recover() == nil {
			t.Error("two types have one schema")
		}
	}()

	r.Of(reflect.TypeFor[thing](), openapi.Answer)
	r.Of(reflect.TypeFor[openapi.Tag](), openapi.Answer)
}

func TestMapKeepsItsOrder(t *testing.T) {
	t.Parallel()
	var m openapi.Map[int]
	for i, key := range []string{"z", "a", "<&>", "z"} {
		m.Set(key, i)
	}

	text, err := json.Marshal(struct {
		M openapi.Map[int] `json:"m"`
	}{m})
	if want := `{"m":{"z":3,"a":1,"\u003c\u0026\u003e":2}}`; err != nil || string(text) != want {
		t.Errorf("got %s %v, want %s", text, err, want)
	}

	m.Sort()
	if v, ok := m.Get("z"); !ok || v != 3 || m[0].Key != "<&>" {
		t.Errorf("got %v", m)
	}
	if _, ok := m.Get("y"); ok {
		t.Error("there is a field y")
	}
}

func TestYAML(t *testing.T) {
	t.Parallel()
	const text = `{"z": 1, "on": ["yes", "Off", "true", true, "null", null, "1e3", 1.50, "2027-01-31", "- x", "a: b", "#", "", " x", "line\nline\n", "ü\u2028"], "a": {}, "b": [], "c": false}`
	out, err := openapi.YAML([]byte(text))
	if err != nil {
		t.Fatal(err)
	}

	var fromYAML, fromJSON any
	if err := yaml.Unmarshal(out, &fromYAML); err != nil {
		t.Fatalf("%v in\n%s", err, out)
	}

	again, err := json.Marshal(fromYAML)
	if err != nil {
		t.Fatal(err)
	}

	json.Unmarshal(again, &fromYAML)
	if err := json.Unmarshal([]byte(text), &fromJSON); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(fromJSON, fromYAML); diff != "" {
		t.Errorf("it says something else (-JSON +YAML):\n%s\n%s", diff, out)
	}

	for _, want := range []string{"z: 1\n\"on\":\n", `- "yes"`, `- "Off"`, "- 1.50\n"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("there is no %q in\n%s", want, out)
		}
	}

	for _, bad := range []string{"", "{", `{"a"`, "[1,"} {
		if _, err := openapi.YAML([]byte(bad)); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}
