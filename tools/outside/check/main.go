// Command check reports whether a file is an OpenAPI document that a common library accepts.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/getkin/kin-openapi/openapi3"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: check FILE")
		os.Exit(2)
	}
	if err := check(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func check(file string) error {
	doc, err := openapi3.NewLoader().LoadFromFile(file)
	if err != nil {
		return err
	}
	if doc.Paths.Len() == 0 {
		return fmt.Errorf("there are no paths")
	}
	return doc.Validate(context.Background())
}
