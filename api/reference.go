package api

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"

	"go-crontab/api/openapi"
)

//go:embed reference
var referenceFiles embed.FS

// The routes of the reference itself.
var (
	openapiJSONDoc = operation{
		id: "getOpenAPI", tag: tagNode, summary: "This API as an OpenAPI document",
		about:  "Generated from the types that the node answers with. It only changes with the version of the program.",
		cached: true, replies: []reply{
			{status: http.StatusOK, about: "The document, OpenAPI 3.1.", media: []string{mediaJSON}},
		},
	}
	openapiYAMLDoc = operation{
		id: "getOpenAPIAsYAML", tag: tagNode, summary: "The same as YAML", about: "For people to read.",
		cached: true, replies: []reply{{status: http.StatusOK, about: "The document.", media: []string{mediaYAML}}},
	}
	referencePageDoc = operation{
		id: "getReference", tag: tagNode, summary: "This API as a page",
		about:   "For browsers. It loads nothing from other servers.",
		replies: []reply{{status: http.StatusOK, about: "The page.", media: []string{mediaHTML}}},
	}
	referenceFileDoc = operation{
		id: "getReferenceFile", tag: tagNode, summary: "Files of that page",
		about:    "`reference.css` and `reference.js`.",
		cached:   true,
		replies:  []reply{{status: http.StatusOK, about: "The file.", media: []string{mediaCSS, mediaScript}}},
		problems: []kind{notFound},
	}
)

// reference is the generated description of the API. It is built on first use, because that takes a
// moment.
type reference struct {
	json, yaml static
	page       string // has baseMark in place of the node's address
}

// newReference builds the reference of routes.
func newReference(routes []route, version string) (*reference, error) {
	document := newDocument(routes, version)
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	if err := e.Encode(document); err != nil {
		return nil, err
	}

	yaml, err := openapi.YAML(text.Bytes())
	if err != nil {
		return nil, err
	}

	r := &reference{json: newStatic(mediaJSON, text.Bytes()), yaml: newStatic(mediaYAML, yaml)}
	var page strings.Builder
	err = referenceTemplate.Execute(&page, pageOf(document, routes, baseMark))
	r.page = page.String()
	return r, err
}

// static is a body that does not change while the process runs.
type static struct {
	media string
	tag   string // its ETag
	body  []byte
}

func newStatic(media string, body []byte) static {
	sum := sha256.Sum256(body)
	return static{media, `"` + base64.RawURLEncoding.EncodeToString(sum[:12]) + `"`, body}
}

// serve answers with the body, or with 304 if the client's copy is current.
func (s static) serve(w http.ResponseWriter, r *http.Request) error {
	return s.serveKept(w, r, "no-cache") // clients may store it, but must revalidate it
}

func (s static) serveKept(w http.ResponseWriter, r *http.Request, keep string) error {
	h := w.Header()
	h.Set("ETag", s.tag)
	h.Set("Cache-Control", keep)
	for tag := range strings.SplitSeq(r.Header.Get("If-None-Match"), ",") {
		if tag = strings.TrimPrefix(strings.TrimSpace(tag), "W/"); tag == s.tag || tag == "*" {
			w.WriteHeader(http.StatusNotModified)
			return nil
		}
	}

	h.Set("Content-Type", s.media)
	w.Write(s.body) // an error means that the client is gone
	return nil
}

// openapiJSON: GET /openapi.json
func (s *Server) openapiJSON(w http.ResponseWriter, r *http.Request) error {
	ref, err := s.reference()
	if err != nil {
		return err
	}
	return ref.json.serve(w, r)
}

// openapiYAML: GET /openapi.yaml
func (s *Server) openapiYAML(w http.ResponseWriter, r *http.Request) error {
	ref, err := s.reference()
	if err != nil {
		return err
	}
	return ref.yaml.serve(w, r)
}

// referenceFile: GET /docs/{file}
func (s *Server) referenceFile(w http.ResponseWriter, r *http.Request) error {
	name, err := param(r, "file")
	if err != nil {
		return err
	}

	media, ok := map[string]string{"reference.css": mediaCSS, "reference.js": mediaScript}[name]
	if !ok {
		return notFound.problem("There is no file %q; the page is at GET /docs.", cutShort(name))
	}

	body, err := referenceFiles.ReadFile("reference/" + name)
	if err != nil {
		return err
	}
	return newStatic(media+"; charset=utf-8", body).serve(w, r)
}
