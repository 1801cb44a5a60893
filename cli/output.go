package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"go-crontab/api/view"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"
)

// output is the output format of a command.
type output struct{ format string }

func (o *output) flags(cmd *cobra.Command, words ...string) {
	if words == nil {
		words = []string{"table", "json", "yaml", "name"}
	}
	choiceVar(cmd.Flags(), &o.format, "output", "o", "table", "output format", words...)
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
}

// object prints v as JSON, as YAML, or only its name. For output to people it calls table.
func (o *output) object(c *console, v any, name string, table func() error) error {
	switch o.format {
	case "json":
		return writeJSON(c.out, v)
	case "yaml":
		return writeYAML(c.out, v)
	case "name":
		if name == "" { // an empty list
			return nil
		}
		_, err := fmt.Fprintln(c.out, name)
		return err
	}
	return table()
}

// deleted is the -o json output for a deleted object.
type deleted struct {
	Deleted string `json:"deleted"`
}

// writeJSON prints JSON, including fields that this program does not know.
func writeJSON(w io.Writer, v any) error {
	if raw, ok := v.([]byte); ok {
		v = json.RawMessage(raw) // otherwise the encoder prints base64
	}

	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false) // commands are full of < and &
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return err
	}
	_, err := w.Write(visibleJSON(b.Bytes()))
	return err
}

func writeYAML(w io.Writer, v any) error {
	var b bytes.Buffer
	if err := writeJSON(&b, v); err != nil {
		return err
	}

	dec := json.NewDecoder(&b)
	dec.UseNumber()
	node, err := yamlNode(dec)
	if err != nil {
		return err
	}

	enc := yaml.NewEncoder(w)
	enc.SetIndent(2)
	if err := enc.Encode(node); err != nil {
		return err
	}
	return enc.Close()
}

// yamlNode reads a JSON value and keeps the order of its fields.
func yamlNode(dec *json.Decoder) (*yaml.Node, error) {
	token, err := dec.Token()
	if err != nil {
		return nil, err
	}

	n := new(yaml.Node)
	delim, ok := token.(json.Delim)
	if !ok {
		if number, ok := token.(json.Number); ok {
			n.Kind, n.Value = yaml.ScalarNode, number.String()
			return n, nil
		}
		return n, n.Encode(token)
	}

	n.Kind = yaml.SequenceNode
	if delim == '{' {
		n.Kind = yaml.MappingNode
	}

	for dec.More() { // keys and values of an object alternate
		child, err := yamlNode(dec)
		if err != nil {
			return nil, err
		}
		n.Content = append(n.Content, child)
	}

	_, err = dec.Token()
	return n, err
}

// list prints a list: the API's response, the names of the items, or a table.
func (r *remote) list(raw view.Page[json.RawMessage], name func(int) string, table func() error) error {
	if r.format != "name" {
		return r.object(r.console, raw, "", table)
	}
	for i := range raw.Items {
		if _, err := fmt.Fprintln(r.out, name(i)); err != nil {
			return err
		}
	}
	return nil
}
