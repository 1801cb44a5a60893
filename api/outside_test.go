package api_test

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// TestDocumentIsOpenAPI checks the document with an independent library (tools/outside/check), and
// its schemas against the meta-schema of JSON Schema.
func TestDocumentIsOpenAPI(t *testing.T) {
	t.Parallel()
	text, err := document("/openapi.json")
	if err != nil {
		t.Fatal(err)
	}

	check := filepath.Join(t.TempDir(), "check")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", check, "./check")
	build.Dir = "../tools/outside"
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}

	isOpenAPI := func(text string) error {
		file := filepath.Join(t.TempDir(), "openapi.json")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.CommandContext(t.Context(), check, file).CombinedOutput()
		if err != nil {
			t.Logf("check: %s", out)
		}
		return err
	}

	if err := isOpenAPI(text); err != nil {
		t.Error(err)
	}

	// The check can also fail.
	for what, change := range map[string]func(doc, get map[string]any){
		"no paths":         func(doc, _ map[string]any) { delete(doc, "paths") },
		"no info":          func(doc, _ map[string]any) { delete(doc, "info") },
		"an unknown field": func(_, get map[string]any) { get["sumary"] = "x" },
		"an unknown place": func(_, get map[string]any) {
			get["parameters"].([]any)[0].(map[string]any)["in"] = "body"
		},
		"a dangling reference": func(_, get map[string]any) {
			get["parameters"].([]any)[0].(map[string]any)["schema"] = map[string]any{"$ref": "#/components/schemas/None"}
		},
		"an id twice": func(_, get map[string]any) { get["operationId"] = "createJob" },
	} {
		var doc map[string]any
		if err := json.Unmarshal([]byte(text), &doc); err != nil {
			t.Fatal(err)
		}

		change(doc, dig(doc, "paths", "/api/v1/jobs", "get"))
		broken, err := json.Marshal(doc)
		if err != nil {
			t.Fatal(err)
		}
		if isOpenAPI(string(broken)) == nil {
			t.Errorf("a document with %s is taken", what)
		}
	}

	of, err := jsonschema.NewCompiler().Compile("https://json-schema.org/draft/2020-12/schema")
	if err != nil {
		t.Fatal(err)
	}

	doc := maps.Clone(getContract(t).doc)
	seen := 0
	everySchema(doc, "#", func(place string, schema map[string]any) {
		seen++
		if err := of.Validate(schema); err != nil {
			t.Errorf("%s: %v", place, err)
		}
		if ref, ok := schema["$ref"].(string); ok &&
			dig(doc, strings.Split(strings.TrimPrefix(ref, "#/"), "/")...) == nil {
			t.Errorf("%s: there is no %s", place, ref)
		}
	})

	if seen < 500 {
		t.Errorf("only %d schemas were seen", seen)
	}
}
