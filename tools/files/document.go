package files

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"herald/tools/sandbox"
)

// Bounds of document extraction, against files that unpack to far more than they are.
const (
	maxDocument  = 50 << 20  // bytes of the file
	maxEntry     = 16 << 20  // bytes read of one part after unpacking
	maxExtracted = 2_000_000 // bytes of text
	maxColumns   = 1000      // of a sheet; cells to the right are left out
	maxSheets    = 200
)

// errFull ends an extraction that reached its bound.
var errFull = errors.New("full")

// documentFormat returns "ipynb", "docx" or "xlsx" for the documents that are shown as text.
func documentFormat(path string) string {
	switch ext := strings.ToLower(filepath.Ext(path)); ext {
	case ".ipynb", ".docx", ".xlsx":
		return ext[1:]
	}
	return ""
}

// extract reads a document's text.
func extract(ctx context.Context, env sandbox.Environment, t target, format string) (string, error) {
	b, err := env.ReadFile(ctx, t.real, maxDocument)
	if err != nil {
		return "", err
	}
	text, err := documentText(ctx, b, format)
	if err != nil {
		if ctx.Err() != nil {
			return "", ctx.Err()
		}
		return "", fmt.Errorf("it can't be read as %s: %w", format, err)
	}
	return text, nil
}

// documentText turns the bytes of a document into text, bounded.
func documentText(ctx context.Context, b []byte, format string) (string, error) {
	return (&extracted{ctx: ctx, maxEntry: maxEntry, maxText: maxExtracted}).document(b, format)
}

// document extracts the text of one document.
func (out *extracted) document(b []byte, format string) (string, error) {
	var err error
	switch format {
	case "ipynb":
		err = out.notebook(b)
	case "docx":
		err = out.archive(b, (*extracted).word)
	case "xlsx":
		err = out.archive(b, (*extracted).workbook)
	default:
		return "", fmt.Errorf("unknown document format %q", format)
	}
	if errors.Is(err, errFull) {
		out.b.WriteString("\n[the rest of the document was left out]\n")
		err = nil
	}
	return strings.ToValidUTF8(out.b.String(), "\uFFFD"), err
}

// extracted collects text up to the bounds.
type extracted struct {
	ctx      context.Context
	b        strings.Builder
	maxEntry int64 // bytes read of one part
	maxText  int   // bytes of text
}

func (e *extracted) put(s string) error {
	if room := e.maxText - e.b.Len(); len(s) > room {
		e.b.WriteString(s[:max(0, room)])
		return errFull
	}
	e.b.WriteString(s)
	return nil
}

// lines is a notebook text: a string or a list of strings.
type lines string

func (l *lines) UnmarshalJSON(b []byte) error {
	var one string
	if json.Unmarshal(b, &one) == nil {
		*l = lines(one)
		return nil
	}
	var many []string
	if err := json.Unmarshal(b, &many); err != nil {
		return err
	}
	*l = lines(strings.Join(many, ""))
	return nil
}

func (e *extracted) notebook(b []byte) error {
	var nb struct {
		Cells []struct {
			Type    string `json:"cell_type"`
			Source  lines  `json:"source"`
			Outputs []struct {
				Text  lines                      `json:"text"`
				Data  map[string]json.RawMessage `json:"data"`
				Ename string                     `json:"ename"`
				Value string                     `json:"evalue"`
			} `json:"outputs"`
		} `json:"cells"`
	}
	if err := json.Unmarshal(b, &nb); err != nil {
		return err
	}
	for i, c := range nb.Cells {
		if err := e.put(fmt.Sprintf("# %%%% [%s] cell %d\n%s\n", c.Type, i+1, strings.TrimRight(string(c.Source), "\n"))); err != nil {
			return err
		}
		for _, o := range c.Outputs {
			text := string(o.Text)
			var plain lines
			if raw, ok := o.Data["text/plain"]; ok && json.Unmarshal(raw, &plain) == nil {
				text += string(plain)
			}
			if o.Ename != "" {
				text += o.Ename + ": " + o.Value
			}
			if text == "" {
				continue
			}
			if err := e.put("# output:\n" + strings.TrimRight(text, "\n") + "\n"); err != nil {
				return err
			}
		}
		if err := e.put("\n"); err != nil {
			return err
		}
	}
	return nil
}

// parts are the files of a packed document.
type parts struct {
	ctx   context.Context
	files map[string]*zip.File
	max   int64
}

func (e *extracted) archive(b []byte, read func(*extracted, parts) error) error {
	z, err := zip.NewReader(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		return err
	}
	p := parts{ctx: e.ctx, files: map[string]*zip.File{}, max: e.maxEntry}
	for _, f := range z.File {
		p.files[strings.TrimPrefix(f.Name, "/")] = f
	}
	return read(e, p)
}

// xml calls each with the tokens of one part. It ends with errFull at the bound.
func (p parts) xml(name string, each func(xml.Token) error) error {
	f, ok := p.files[name]
	if !ok {
		return fmt.Errorf("it has no part %s", name)
	}
	r, err := f.Open()
	if err != nil {
		return err
	}
	defer r.Close()
	d := xml.NewDecoder(&boundedReader{r: r, left: p.max})
	d.Strict = false
	for n := 0; ; n++ {
		if n%4096 == 0 && p.ctx.Err() != nil {
			return p.ctx.Err()
		}
		tok, err := d.RawToken()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := each(tok); err != nil {
			return err
		}
	}
}

// boundedReader ends with errFull instead of the end of the file.
type boundedReader struct {
	r    io.Reader
	left int64
}

func (b *boundedReader) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errFull
	}
	n, err := b.r.Read(p[:min(int64(len(p)), b.left)])
	b.left -= int64(n)
	return n, err
}

func attr(s xml.StartElement, name string) string {
	for _, a := range s.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

// word writes one line for each paragraph and one for each table row.
func (e *extracted) word(p parts) error {
	text, cells := false, 0
	return p.xml("word/document.xml", func(tok xml.Token) error {
		switch t := tok.(type) {
		case xml.StartElement:
			switch t.Name.Local {
			case "t":
				text = true
			case "tab":
				return e.put("\t")
			case "br", "cr":
				return e.put("\n")
			case "tc":
				cells++
			case "pStyle":
				if n, err := strconv.Atoi(strings.TrimPrefix(attr(t, "val"), "Heading")); err == nil && n >= 1 && n <= 6 {
					return e.put(strings.Repeat("#", n) + " ")
				}
			}
		case xml.EndElement:
			switch t.Name.Local {
			case "t":
				text = false
			case "p":
				if cells > 0 {
					return e.put(" ")
				}
				return e.put("\n")
			case "tc":
				cells = max(0, cells-1)
				return e.put("\t")
			case "tr":
				return e.put("\n")
			}
		case xml.CharData:
			if text {
				return e.put(string(t))
			}
		}
		return nil
	})
}

// workbook writes each sheet under its name, rows as lines, cells separated by tabs.
func (e *extracted) workbook(p parts) error {
	shared, err := sharedStrings(p)
	if err != nil && !errors.Is(err, errFull) {
		return err
	}
	files, err := relations(p)
	if err != nil {
		return err
	}
	type sheet struct{ name, file string }
	var sheets []sheet
	err = p.xml("xl/workbook.xml", func(tok xml.Token) error {
		if s, ok := tok.(xml.StartElement); ok && s.Name.Local == "sheet" && len(sheets) < maxSheets {
			if file := files[attr(s, "id")]; file != "" {
				sheets = append(sheets, sheet{attr(s, "name"), file})
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, s := range sheets {
		if err := e.put("## Sheet: " + s.name + "\n"); err != nil {
			return err
		}
		if err := e.sheet(p, s.file, shared); err != nil {
			return err
		}
		if err := e.put("\n"); err != nil {
			return err
		}
	}
	return nil
}

// relations maps the ids of a workbook to its parts.
func relations(p parts) (map[string]string, error) {
	files := map[string]string{}
	err := p.xml("xl/_rels/workbook.xml.rels", func(tok xml.Token) error {
		if s, ok := tok.(xml.StartElement); ok && s.Name.Local == "Relationship" {
			to := attr(s, "Target")
			if strings.HasPrefix(to, "/") {
				to = to[1:]
			} else {
				to = path.Join("xl", to)
			}
			files[attr(s, "Id")] = to
		}
		return nil
	})
	return files, err
}

// sharedStrings reads the table that text cells point into; a workbook of numbers has none.
func sharedStrings(p parts) ([]string, error) {
	if _, ok := p.files["xl/sharedStrings.xml"]; !ok {
		return nil, nil
	}
	var all []string
	var cur strings.Builder
	text := false
	err := p.xml("xl/sharedStrings.xml", func(tok xml.Token) error {
		switch t := tok.(type) {
		case xml.StartElement:
			switch t.Name.Local {
			case "si":
				cur.Reset()
			case "t":
				text = true
			}
		case xml.EndElement:
			switch t.Name.Local {
			case "si":
				all = append(all, cur.String())
			case "t":
				text = false
			}
		case xml.CharData:
			if text {
				cur.Write(t)
			}
		}
		return nil
	})
	return all, err
}

func (e *extracted) sheet(p parts, file string, shared []string) error {
	var row []string
	var kind string
	var value strings.Builder
	column, reading := 0, false
	return p.xml(file, func(tok xml.Token) error {
		switch t := tok.(type) {
		case xml.StartElement:
			switch t.Name.Local {
			case "row":
				row, column = row[:0], 0
			case "c":
				kind = attr(t, "t")
				value.Reset()
				if n := columnOf(attr(t, "r")); n > 0 {
					column = n - 1
				}
			case "v", "t":
				reading = true
			}
		case xml.EndElement:
			switch t.Name.Local {
			case "v", "t":
				reading = false
			case "c":
				if column < maxColumns {
					for len(row) <= column {
						row = append(row, "")
					}
					row[column] = cell(kind, value.String(), shared)
				}
				column++
			case "row":
				return e.put(strings.Join(row, "\t") + "\n")
			}
		case xml.CharData:
			if reading {
				value.Write(t)
			}
		}
		return nil
	})
}

// cell gives the text of a cell, on one line.
func cell(kind, value string, shared []string) string {
	switch kind {
	case "s":
		n, err := strconv.Atoi(strings.TrimSpace(value))
		if err != nil || n < 0 || n >= len(shared) {
			return ""
		}
		value = shared[n]
	case "b":
		value = map[string]string{"1": "TRUE", "0": "FALSE"}[value]
	}
	return strings.NewReplacer("\n", " ", "\r", " ", "\t", " ").Replace(value)
}

// columnOf reads the letters of a cell reference such as BC12, counted from 1; 0 when there are none.
func columnOf(ref string) int {
	n := 0
	for _, r := range ref {
		if r < 'A' || r > 'Z' || n > maxColumns {
			break
		}
		n = n*26 + int(r-'A') + 1
	}
	return n
}
