package api

import (
	"bytes"
	"compress/gzip"
	"io/fs"
	"net/http"
	"path"
	"slices"
	"strings"
	"sync"

	web "go-crontab/page"
)

// The console is a single page with all screens. It picks the screen from the address.

// screens are the first path elements of the console's screens.
var screens = []string{
	"jobs", "runs", "upcoming", "timeline", "alerts", "cluster", "audit", "settings",
	"activity", // where alerts, audit and parts of the settings were before
}

// pagePolicy allows the page to load from and call only this node. The page holds no inline script
// or style, and no text can become markup. So a job's output or name stays text.
const pagePolicy = contentPolicy + "; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'" +
	"; require-trusted-types-for 'script'; trusted-types 'none'"

// pageFile holds a file of the console, plain and compressed.
type pageFile struct{ plain, packed static }

// console holds the embedded files. They are compressed once, on the first request.
var console = sync.OnceValues(func() (map[string]pageFile, error) {
	files := map[string]pageFile{}
	err := fs.WalkDir(web.Files(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}

		body, err := fs.ReadFile(web.Files(), name)
		if err != nil {
			return err
		}

		media, ok := map[string]string{
			".html": mediaHTML + "; charset=utf-8",
			".js":   mediaScript + "; charset=utf-8",
			".css":  mediaCSS + "; charset=utf-8",
			".svg":  mediaSVG,
		}[path.Ext(name)]
		if !ok {
			return nil // of a type that is not served
		}

		var packed bytes.Buffer
		z, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
		if err != nil {
			return err
		}
		if _, err := z.Write(body); err != nil {
			return err
		}
		if err := z.Close(); err != nil {
			return err
		}

		files[name] = pageFile{newStatic(media, body), newStatic(media, packed.Bytes())}
		return nil
	})

	return files, err
})

// serve answers with the file, compressed if the client accepts gzip.
func (f pageFile) serve(w http.ResponseWriter, r *http.Request, keep string) error {
	h := w.Header()
	h.Set("Vary", "Accept-Encoding")

	answer := f.plain
	if acceptsGzip(r) {
		h.Set("Content-Encoding", "gzip")
		answer = f.packed
	}

	return answer.serveKept(w, r, keep)
}

// acceptsGzip reports whether the client accepts gzip.
func acceptsGzip(r *http.Request) bool {
	for coding := range strings.SplitSeq(r.Header.Get("Accept-Encoding"), ",") {
		name, q, _ := strings.Cut(strings.ReplaceAll(coding, " ", ""), ";")
		if strings.EqualFold(name, "gzip") && q != "q=0" {
			return true
		}
	}
	return false
}

// home: GET /
func (s *Server) home(w http.ResponseWriter, r *http.Request) error {
	return servePage(w, r, "no-cache")
}

// servePage answers with the page. keep becomes its Cache-Control.
func servePage(w http.ResponseWriter, r *http.Request, keep string) error {
	files, err := console()
	if err != nil {
		return err
	}

	f, ok := files["index.html"]
	if !ok {
		f = files["placeholder.html"]
	}

	w.Header().Set("Content-Security-Policy", pagePolicy)
	return f.serve(w, r, keep)
}

// asset: GET /assets/{file}
func (s *Server) asset(w http.ResponseWriter, r *http.Request) error {
	name, err := param(r, "file")
	if err != nil {
		return err
	}

	files, err := console()
	if err != nil {
		return err
	}

	f, ok := files["assets/"+name]
	if !ok {
		return notFound.problem(
			"There is no file %q. The page that asks for it has another version than this node; reload it.", cutShort(name))
	}

	return f.serve(w, r, "public, max-age=31536000, immutable") // the name holds a hash of the content
}

// orScreen answers with the page if the path is a screen's, and otherwise calls next. A browser
// that asks for an unknown address also gets the page, with status 404. The page then says that the
// address is unknown, and offers a way back.
func (s *Server) orScreen(next http.HandlerFunc) http.HandlerFunc {
	screen, unknown := s.serve(s.home), s.serve(s.unknownScreen)
	return func(w http.ResponseWriter, r *http.Request) {
		first, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		reads := r.Method == http.MethodGet || r.Method == http.MethodHead

		switch {
		case reads && slices.Contains(screens, first):
			screen(w, r)
		case reads && !slices.Contains(notScreens, first) && strings.Contains(r.Header.Get("Accept"), mediaHTML):
			unknown(w, r)
		default:
			next(w, r)
		}
	}
}

// notScreens are first path elements that programs use. Their problems stay JSON, even if the
// client accepts HTML.
var notScreens = []string{"api", "assets", "docs", "debug"}

// unknownScreen answers with the page and status 404.
func (s *Server) unknownScreen(w http.ResponseWriter, r *http.Request) error {
	r = r.Clone(r.Context())
	r.Header.Del("If-None-Match") // a stored copy of the page says nothing about this address
	return servePage(&notFoundWriter{ResponseWriter: w}, r, "no-store")
}

// notFoundWriter gives an answer the status 404.
type notFoundWriter struct {
	http.ResponseWriter
	wrote bool
}

func (w *notFoundWriter) Write(b []byte) (int, error) {
	if !w.wrote {
		w.wrote = true
		w.Header().Del("ETag")
		w.WriteHeader(http.StatusNotFound)
	}
	return w.ResponseWriter.Write(b)
}
