package api

import (
	_ "embed"
	"html/template"
	"net/http"
)

//go:embed home.html
var homeText string

var homePage = template.Must(template.New("home").Parse(homeText))

// home: GET /
func (s *Server) home(w http.ResponseWriter, r *http.Request) error {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", contentPolicy+"; style-src 'unsafe-inline'")
	return homePage.Execute(w, map[string]string{"Node": s.cfg.Node, "Version": s.cfg.Version, "Base": "http://" + r.Host})
}
