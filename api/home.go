package api

import (
	_ "embed"
	"html/template"
	"net/http"
)

//go:embed home.html
var homeText string

//go:embed sign-in.js
var signInScript []byte

var homePage = template.Must(template.New("home").Parse(homeText))

// home: GET /
func (s *Server) home(w http.ResponseWriter, r *http.Request) error {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", contentPolicy+"; style-src 'unsafe-inline'; script-src 'self'; connect-src 'self'")
	return homePage.Execute(w, map[string]string{"Node": s.cfg.Node, "Version": s.cfg.Version, "Base": s.base(r)})
}

// signInJS: GET /sign-in.js
func (s *Server) signInJS(w http.ResponseWriter, r *http.Request) error {
	return newStatic(mediaScript+"; charset=utf-8", signInScript).serve(w, r)
}
