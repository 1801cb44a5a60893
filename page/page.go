// Package page holds the web console. `make build` builds it from the sources in this folder; without
// that step the package holds a page that explains how to build it.
package page

import (
	"embed"
	"io/fs"
)

//go:embed all:dist
var dist embed.FS

// Files returns the files for browsers: a page, and its assets in assets/. The names of assets change
// with their content.
func Files() fs.FS {
	files, err := fs.Sub(dist, "dist")
	if err != nil {
		panic(err) // the folder's name is valid
	}
	return files
}

// Built reports whether this program contains the console.
func Built() bool {
	_, err := fs.Stat(dist, "dist/index.html")
	return err == nil
}
