// Command pagetypes writes the types of the API's answers for the console, page/src/types.ts, from
// the OpenAPI document.
package main

import (
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"time"

	"go-crontab/api"
	"go-crontab/sql/read"

	"go.yaml.in/yaml/v3"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: pagetypes FILE")
		os.Exit(2)
	}

	text, err := types()
	if err == nil {
		err = os.WriteFile(os.Args[1], []byte(text), 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "pagetypes:", err)
		os.Exit(1)
	}
}

// schema is the part of a JSON Schema that becomes a type.
type schema struct {
	Ref        string    `yaml:"$ref"`
	Type       yaml.Node `yaml:"type"` // a name, or a list of names
	Enum       []string  `yaml:"enum"`
	Items      *schema   `yaml:"items"`
	AnyOf      []*schema `yaml:"anyOf"`
	Properties yaml.Node `yaml:"properties"` // in order
	Required   []string  `yaml:"required"`
	Values     yaml.Node `yaml:"additionalProperties"` // a schema, or false
}

// types returns the text of the file. It leaves out the types of lists, because a list is a Page of
// its items, and the types of requests.
func types() (string, error) {
	document, err := openAPI()
	if err != nil {
		return "", err
	}

	var d struct {
		Components struct {
			Schemas yaml.Node `yaml:"schemas"`
		} `yaml:"components"`
	}
	if err := yaml.Unmarshal(document, &d); err != nil {
		return "", err
	}

	var out strings.Builder
	out.WriteString("// Made from the OpenAPI document by tools/pagetypes (make page-types). Do not edit.\n\n" +
		"/** A page of a list; next is the cursor of the page after it. */\n" +
		"export interface Page<T> { items: T[]; next?: string }\n")
	err = each(&d.Components.Schemas, func(name string, s *schema) error {
		for _, end := range []string{"Input", "Patch", "Page"} {
			if strings.HasSuffix(name, end) {
				return nil
			}
		}
		return declare(&out, name, s)
	})
	return out.String(), err
}

func declare(out *strings.Builder, name string, s *schema) error {
	if s.Properties.Kind == 0 {
		t, err := typeOf(s)
		fmt.Fprintf(out, "\nexport type %s = %s;\n", name, t)
		return err
	}

	fmt.Fprintf(out, "\nexport interface %s {\n", name)
	err := each(&s.Properties, func(field string, of *schema) error {
		if !slices.Contains(s.Required, field) {
			field += "?"
		}
		t, err := typeOf(of)
		fmt.Fprintf(out, "  %s: %s;\n", field, t)
		return err
	})
	out.WriteString("}\n")
	return err
}

// typeOf returns the TypeScript of a schema.
func typeOf(s *schema) (string, error) {
	var names []string
	switch s.Type.Kind {
	case yaml.ScalarNode:
		names = []string{s.Type.Value}
	case yaml.SequenceNode:
		if err := s.Type.Decode(&names); err != nil {
			return "", err
		}
	}

	switch {
	case s.Ref != "":
		return s.Ref[strings.LastIndexByte(s.Ref, '/')+1:], nil
	case s.AnyOf != nil:
		ways := make([]string, len(s.AnyOf))
		for i, way := range s.AnyOf {
			t, err := typeOf(way)
			if err != nil {
				return "", err
			}
			ways[i] = t
		}
		return strings.Join(ways, " | "), nil
	case s.Enum != nil:
		words := make([]string, len(s.Enum))
		for i, w := range s.Enum {
			words[i] = "'" + w + "'"
		}
		return strings.Join(words, " | "), nil
	}

	for i, name := range names {
		switch name {
		case "string", "boolean", "null":
		case "integer", "number":
			names[i] = "number"
		case "array":
			item, err := typeOf(s.Items)
			if err != nil {
				return "", err
			}
			if strings.Contains(item, " ") {
				item = "(" + item + ")"
			}
			names[i] = item + "[]"
		case "object":
			value := "unknown"
			if s.Values.Kind == yaml.MappingNode {
				var values schema
				err := s.Values.Decode(&values)
				if err == nil {
					value, err = typeOf(&values)
				}
				if err != nil {
					return "", err
				}
			}
			names[i] = "Record<string, " + value + ">"
		default:
			return "", fmt.Errorf("no type for %s", name)
		}
	}

	if names == nil {
		return "unknown", nil
	}
	return strings.Join(names, " | "), nil
}

// each calls do for the schemas of an object, in order.
func each(object *yaml.Node, do func(name string, s *schema) error) error {
	for i := 0; i+1 < len(object.Content); i += 2 {
		var s schema
		name := object.Content[i].Value
		err := object.Content[i+1].Decode(&s)
		if err == nil {
			err = do(name, &s)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// openAPI asks a server without a database for the document.
func openAPI() ([]byte, error) {
	s := api.New(api.Config{
		DB: &read.DB{}, Now: time.Now, Ready: func() error { return nil }, Editor: func() api.Editor { return nil },
		Log: slog.New(slog.DiscardHandler),
	})
	defer s.Close()

	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://127.0.0.1/openapi.json", nil))
	if w.Code != http.StatusOK {
		return nil, fmt.Errorf("GET /openapi.json: got %d: %s", w.Code, w.Body)
	}
	return w.Body.Bytes(), nil
}
