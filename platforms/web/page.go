package web

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"html"
	"io/fs"
	"net/http"
	"path"
	"strings"
)

//go:embed page
var embedded embed.FS

// page is the embedded page, with its static files under a path that names their content.
type page struct {
	html  []byte
	files map[string][]byte // by path below page/
	hash  string            // of all files
}

// loadPage reads the embedded files and fills in the page's head.
func loadPage(o Options) (*page, error) {
	p := &page{files: make(map[string][]byte)}
	sum := sha256.New()
	err := fs.WalkDir(embedded, "page", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := embedded.ReadFile(name)
		if err != nil {
			return err
		}
		fmt.Fprintf(sum, "%s %d\n", name, len(b))
		sum.Write(b)
		p.files[strings.TrimPrefix(name, "page/")] = b
		return nil
	})
	if err != nil {
		return nil, err
	}
	p.hash = hex.EncodeToString(sum.Sum(nil)[:8])
	p.html = []byte(strings.NewReplacer(
		"{{static}}", "/static/"+p.hash,
		"{{name}}", html.EscapeString(o.Name),
	).Replace(string(p.files["index.html"])))
	delete(p.files, "index.html")
	return p, nil
}

// policy lets the page load its own files and talk to its own server, and nothing else.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; media-src 'self' blob:; " +
	"connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// serveHTML answers with the page.
func (p *page) serveHTML(w http.ResponseWriter, _ *http.Request) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", policy)
	h.Set("Cache-Control", "no-cache")
	_, _ = w.Write(p.html)
}

// types are the static files' types, so that the machine's own table has no say.
var types = map[string]string{
	".css":         "text/css; charset=utf-8",
	".js":          "text/javascript; charset=utf-8",
	".svg":         "image/svg+xml",
	".png":         "image/png",
	".webmanifest": "application/manifest+json",
}

// serveStatic answers with one static file. Its address names its content, so browsers may keep it without asking again.
func (p *page) serveStatic(w http.ResponseWriter, r *http.Request) {
	b, ok := p.files[r.PathValue("file")]
	if !ok || r.PathValue("hash") != p.hash {
		http.NotFound(w, r)
		return
	}
	h := w.Header()
	h.Set("Content-Type", types[path.Ext(r.PathValue("file"))])
	h.Set("Cache-Control", "public, max-age=31536000, immutable")
	_, _ = w.Write(b)
}
