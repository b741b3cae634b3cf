package web

import (
	"bytes"
	"html"
	"net/url"
	"strings"
	"sync"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/renderer"
	ghtml "github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/util"
)

// maxMarkdown is the longest text that is parsed, in bytes. A longer one is shown as it is: nobody reads
// its markup, and it would hold up the page.
const maxMarkdown = 256 << 10

// markdown is made once: it holds no state between renderings.
var markdown = sync.OnceValue(func() goldmark.Markdown {
	return goldmark.New(
		// GFM by its parts: a table's alignment as an attribute, because the page's policy forbids styles in
		// the markup.
		goldmark.WithExtensions(
			extension.Linkify, extension.Strikethrough, extension.TaskList,
			extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignAttribute)),
		),
		goldmark.WithRendererOptions(
			ghtml.WithHardWraps(),
			renderer.WithNodeRenderers(util.Prioritized(safeNodes{}, 100)),
		),
	)
})

// RenderMarkdown turns GitHub-flavoured Markdown into HTML that is safe to put into the page: raw HTML
// shows as the text it is, links lead to http, https, mailto and tel only, and pictures from elsewhere
// become links, so that reading an answer asks no other server for anything.
func RenderMarkdown(source string) (out string) {
	defer func() {
		if recover() != nil { // a bug of the parser costs the markup, not the message
			out = renderPlain(source)
		}
	}()
	if len(source) > maxMarkdown {
		return renderPlain(source)
	}
	var buf bytes.Buffer
	if err := markdown().Convert([]byte(strings.ToValidUTF8(source, "\uFFFD")), &buf); err != nil {
		return renderPlain(source)
	}
	return buf.String()
}

func renderPlain(source string) string {
	return `<p class="plain">` + html.EscapeString(strings.ToValidUTF8(source, "\uFFFD")) + "</p>\n"
}

// safeNodes renders the nodes whose usual rendering would let something in or out.
type safeNodes struct{}

// RegisterFuncs implements renderer.NodeRenderer.
func (safeNodes) RegisterFuncs(reg renderer.NodeRendererFuncRegisterer) {
	reg.Register(ast.KindRawHTML, rawHTML)
	reg.Register(ast.KindHTMLBlock, htmlBlock)
	reg.Register(ast.KindLink, link)
	reg.Register(ast.KindImage, image)
	reg.Register(ast.KindAutoLink, autoLink)
}

func rawHTML(w util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if entering {
		segments := n.(*ast.RawHTML).Segments
		for i := range segments.Len() {
			s := segments.At(i)
			writeText(w, s.Value(source))
		}
	}
	return ast.WalkSkipChildren, nil
}

func htmlBlock(w util.BufWriter, source []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	n := node.(*ast.HTMLBlock)
	if !entering {
		return ast.WalkContinue, nil
	}
	_, _ = w.WriteString(`<p class="plain">`)
	for i := range n.Lines().Len() {
		s := n.Lines().At(i)
		writeText(w, s.Value(source))
	}
	if n.HasClosure() {
		writeText(w, n.ClosureLine.Value(source))
	}
	_, _ = w.WriteString("</p>\n")
	return ast.WalkContinue, nil
}

func link(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	openClose(w, string(n.(*ast.Link).Destination), entering)
	return ast.WalkContinue, nil
}

func image(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	openClose(w, string(n.(*ast.Image).Destination), entering)
	if entering && n.FirstChild() == nil {
		writeText(w, n.(*ast.Image).Destination)
	}
	return ast.WalkContinue, nil
}

func autoLink(w util.BufWriter, source []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
	n := node.(*ast.AutoLink)
	if !entering {
		return ast.WalkContinue, nil
	}
	target := string(n.URL(source))
	if n.AutoLinkType == ast.AutoLinkEmail && !strings.HasPrefix(strings.ToLower(target), "mailto:") {
		target = "mailto:" + target
	}
	openClose(w, target, true)
	writeText(w, n.Label(source))
	openClose(w, target, false)
	return ast.WalkContinue, nil
}

// openClose writes a link's start or end, or a span's when the target is not one to follow.
func openClose(w util.BufWriter, target string, entering bool) {
	if !safeLink(target) {
		if entering {
			_, _ = w.WriteString(`<span class="dead" title="` + html.EscapeString(target) + `">`)
		} else {
			_, _ = w.WriteString("</span>")
		}
		return
	}
	if entering {
		_, _ = w.WriteString(`<a href="` + html.EscapeString(target) + `" target="_blank" rel="noopener noreferrer nofollow">`)
	} else {
		_, _ = w.WriteString("</a>")
	}
}

// safeLink reports whether a link may be followed: absolute, and of a scheme that runs nothing here.
func safeLink(target string) bool {
	u, err := url.Parse(target)
	if err != nil {
		return false
	}
	switch strings.ToLower(u.Scheme) {
	case "http", "https":
		return u.Host != ""
	case "mailto", "tel":
		return true
	}
	return false
}

func writeText(w util.BufWriter, b []byte) { _, _ = w.WriteString(html.EscapeString(string(b))) }
