// Package page holds the web console, as `make build` has built it from the sources beside this file. Without that step
// it holds a page that says how to build it.
package page

import (
	"embed"
	"io/fs"
)

//go:embed all:dist
var dist embed.FS

// Files are those that browsers get: a page, and below assets/ what it loads. The names there change with what is in
// them.
func Files() fs.FS {
	files, err := fs.Sub(dist, "dist")
	if err != nil {
		panic(err) // the name of the folder is a valid one
	}
	return files
}

// Built tells whether the console is in this program.
func Built() bool {
	_, err := fs.Stat(dist, "dist/index.html")
	return err == nil
}
