package files

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"herald/tools"
	"herald/tools/sandbox"
)

// Bounds of read_file.
const (
	defaultLimit = 500
	maxLimit     = 2000
	maxFormatted = 100_000  // characters of an answer, line numbers included
	maxLine      = 2000     // characters shown of one line
	maxCounted   = 64 << 20 // bytes read to count lines past the window
	sniffed      = 8 << 10  // bytes looked at to tell text from data
	largeLimit   = 200      // a cut answer to a larger limit gets the hint for large files
)

type readArgs struct {
	Path   string `json:"path"`
	Offset *int   `json:"offset"`
	Limit  *int   `json:"limit"`
}

type readResult struct {
	Path       string `json:"path"`
	Content    string `json:"content"`
	Lines      int    `json:"lines"`                 // in content
	TotalLines *int   `json:"total_lines,omitempty"` // absent when the file is too long to count
	FileSize   int64  `json:"file_size"`
	Truncated  bool   `json:"truncated,omitempty"`
	NextOffset int    `json:"next_offset,omitempty"`
	Format     string `json:"format,omitempty"` // of an extracted document
	Hint       string `json:"_hint,omitempty"`
}

type unchangedResult struct {
	Status          string `json:"status"`
	Path            string `json:"path"`
	Dedup           bool   `json:"dedup"`
	ContentReturned bool   `json:"content_returned"`
	Message         string `json:"message"`
}

const readSchema = `{
  "type": "object",
  "properties": {
    "path": {"type": "string", "description": "File to read: absolute, relative to the working directory, or starting with ~/."},
    "offset": {"type": "integer", "minimum": 1, "default": 1, "description": "First line, counted from 1."},
    "limit": {"type": "integer", "minimum": 1, "maximum": 2000, "default": 500, "description": "Number of lines."}
  },
  "required": ["path"],
  "additionalProperties": false
}`

func (f *Family) readTool() tools.Tool {
	return tools.Tool{
		Spec: tools.Spec{
			Name: "read_file", Toolset: "file", Core: true, ReadOnly: true, Emoji: "📖", Preview: "path",
			Description: "Read a text file with line numbers, as lines of the form N|text. Long files come in parts: continue with next_offset. " +
				"Notebooks (.ipynb), Word (.docx) and Excel (.xlsx) files are shown as text. Other binary files can't be read.",
			Parameters: json.RawMessage(readSchema), Parallel: tools.PathScoped, Paths: f.scopes(false, ""),
			MaxResult: -1, // bounded here
		},
		Run: f.read,
	}
}

func (f *Family) read(ctx context.Context, call tools.Call) (tools.Result, error) {
	var a readArgs
	if err := decode(call, &a); err != nil {
		return tools.Result{}, err
	}
	offset, limit, err := window(a)
	if err != nil {
		return fail(err)
	}
	p, err := f.place(call.Caller)
	if err != nil {
		return fail(err)
	}
	if abs, err := p.abs(a.Path); err == nil && device(abs) {
		return fail(fmt.Errorf("%s is a device or a process file; it can't be read", a.Path))
	}
	t, err := p.target(ctx, a.Path)
	if err != nil {
		return fail(err)
	}
	if err := mayRead(f.guard(ctx, p), t, false); err != nil {
		return fail(err)
	}
	info, err := p.env.Stat(ctx, t.real)
	if err != nil {
		return fail(f.missing(ctx, p, t, err))
	}
	if info.IsDir() {
		return fail(fmt.Errorf("%s is a directory; list it with search_files, target files", a.Path))
	}
	if !info.IsRegular() {
		return fail(fmt.Errorf("%s is not a regular file", a.Path))
	}
	format := documentFormat(t.real)
	if format == "" {
		if err := refuseBinary(t); err != nil {
			return fail(err)
		}
	}
	key, now := readKey{t.real, offset, limit}, stampOf(info)
	if n := f.tracker.again(call.Caller.Session, key, now); n > 0 {
		return repeated(t, n), nil
	}
	r, err := show(ctx, p, t, info, format, offset, limit)
	if err != nil {
		return fail(err)
	}
	f.tracker.saw(call.Caller.Session, key, now)
	return tools.JSON(r), nil
}

// window checks offset and limit.
func window(a readArgs) (offset, limit int, err error) {
	offset, limit = 1, defaultLimit
	if a.Offset != nil {
		offset = *a.Offset
	}
	if a.Limit != nil {
		limit = *a.Limit
	}
	if offset < 1 {
		return 0, 0, fmt.Errorf("offset: %d is not allowed; lines count from 1", offset)
	}
	if limit < 1 || limit > maxLimit {
		return 0, 0, fmt.Errorf("limit: %d is not allowed; give 1 to %d lines", limit, maxLimit)
	}
	return offset, limit, nil
}

// repeated answers a read of what the session has seen already.
func repeated(t target, n int) tools.Result {
	if n > 1 {
		return tools.Failure("BLOCKED: %s was read %d times with the same offset and limit and has not changed. Use what you were shown before, read another part, or go on with the task.", t.name, n+1)
	}
	return tools.JSON(unchangedResult{
		Status: "unchanged", Path: t.name, Dedup: true,
		Message: "The file has not changed since you read this part; what you were shown then is still right.",
	})
}

// missing says that a file is not there and which names beside it look alike.
func (f *Family) missing(ctx context.Context, p place, t target, err error) error {
	if !isNotExist(err) {
		return describe(t.name, err)
	}
	text := t.name + " does not exist"
	if names := similar(ctx, p.env, t.real); len(names) > 0 {
		for i, n := range names {
			names[i] = p.display(filepath.Join(filepath.Dir(t.abs), n))
		}
		text += "; similar names there: " + strings.Join(names, ", ")
	} else {
		text += fmt.Sprintf(" (looked for %s)", t.abs)
	}
	return errors.New(text)
}

// show reads the part of a file or document that was asked for.
func show(ctx context.Context, p place, t target, info sandbox.FileInfo, format string, offset, limit int) (readResult, error) {
	var src io.ReadCloser
	var err error
	if format != "" {
		var text string
		if text, err = extract(ctx, p.env, t, format); err == nil {
			src = io.NopCloser(strings.NewReader(text))
		}
	} else {
		src, err = p.env.Open(ctx, t.real)
	}
	if err != nil {
		return readResult{}, describe(t.name, err)
	}
	defer src.Close()
	part, err := readPart(ctx, src, offset, limit)
	if err != nil {
		return readResult{}, describe(t.name, err)
	}
	if part.binary {
		return readResult{}, fmt.Errorf("%s is a binary file (%d bytes); it can't be shown as text", t.name, info.Size)
	}
	if part.total >= 0 && offset > max(part.total, 1) {
		return readResult{}, fmt.Errorf("offset: %d is past the end; %s has %d lines", offset, t.name, part.total)
	}
	r := readResult{Path: t.name, Content: part.text.String(), Lines: part.lines, FileSize: info.Size, Format: format}
	if part.total >= 0 {
		r.TotalLines = &part.total
	}
	if n := utf8.RuneCountInString(r.Content); n > maxFormatted {
		return readResult{}, fmt.Errorf("this part of %s has %d characters in %d lines (the file: %s lines, %d bytes); at most %d characters are shown at once. Ask for fewer lines with limit, or search for the part you need",
			t.name, n, part.lines, countText(part.total), info.Size, maxFormatted)
	}
	if part.more {
		r.Truncated, r.NextOffset = true, offset+part.lines
		if limit > largeLimit {
			r.Hint = "This is a large file. Rather than reading all of it, search for the part you need and read that with offset and limit."
		}
	}
	return r, nil
}

func countText(n int) string {
	if n < 0 {
		return "very many"
	}
	return strconv.Itoa(n)
}

// part is a run of formatted lines.
type part struct {
	text   strings.Builder
	lines  int
	total  int // lines of the whole; -1 when they were not counted to the end
	more   bool
	binary bool
}

// readPart formats lines offset to offset+limit-1 and goes on counting. Memory is bounded by what is shown.
func readPart(ctx context.Context, src io.Reader, offset, limit int) (*part, error) {
	r := bufio.NewReaderSize(src, 64<<10)
	head, err := r.Peek(sniffed)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, bufio.ErrBufferFull) {
		return nil, err
	}
	p := &part{}
	if bytes.IndexByte(head, 0) >= 0 {
		p.binary = true
		return p, nil
	}
	var read int64
	number := 0
	for {
		if number%1024 == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		in := number+1 >= offset && p.lines < limit
		line, n, err := readLine(r, in)
		read += n
		if n > 0 {
			number++
			switch {
			case in:
				p.add(number, line)
			case p.lines == limit:
				p.more = true
			}
			if p.text.Len() > 8*maxFormatted {
				p.total = -1 // far past the bound already; the answer will be an error
				return p, nil
			}
		}
		if errors.Is(err, io.EOF) {
			p.total = number
			return p, nil
		}
		if err != nil {
			return nil, err
		}
		if read > maxCounted && p.more {
			p.total = -1
			return p, nil
		}
	}
}

// add formats a line.
func (p *part) add(number int, line string) {
	if p.lines > 0 {
		p.text.WriteByte('\n')
	}
	p.lines++
	p.text.WriteString(strconv.Itoa(number))
	p.text.WriteByte('|')
	p.text.WriteString(line)
}

// readLine reads one line of any length, keeping its beginning when keep is set. n counts its bytes with the
// line end; it is 0 only at the end of the file.
func readLine(r *bufio.Reader, keep bool) (line string, n int64, err error) {
	var kept []byte
	for {
		chunk, err := r.ReadSlice('\n')
		n += int64(len(chunk))
		if keep && len(kept) < 4*maxLine+2 {
			kept = append(kept, chunk...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if keep {
			line = cutLine(strings.TrimRight(strings.ToValidUTF8(string(kept), "\uFFFD"), "\r\n"), n)
		}
		return line, n, err
	}
}

// cutLine bounds a line; size is its length in bytes.
func cutLine(line string, size int64) string {
	if len(line) <= maxLine {
		return line
	}
	count := 0
	for i := range line {
		if count == maxLine {
			return line[:i] + fmt.Sprintf(" … [line cut, %d bytes in all]", size)
		}
		count++
	}
	return line
}

// imageTypes and otherBinary are refused by name, before the file is opened.
var (
	imageTypes  = []string{".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp", ".tif", ".tiff", ".ico", ".heic", ".avif"}
	otherBinary = []string{
		".exe", ".dll", ".so", ".dylib", ".o", ".a", ".obj", ".lib", ".bin", ".class", ".jar", ".war", ".pyc", ".pyo", ".wasm",
		".zip", ".tar", ".gz", ".tgz", ".bz2", ".xz", ".zst", ".7z", ".rar", ".iso", ".dmg", ".deb", ".rpm",
		".mp3", ".mp4", ".m4a", ".mkv", ".mov", ".avi", ".webm", ".wav", ".flac", ".ogg", ".opus",
		".pdf", ".doc", ".xls", ".ppt", ".pptx", ".odt", ".ods", ".odp", ".ttf", ".otf", ".woff", ".woff2",
		".db", ".sqlite", ".sqlite3", ".parquet", ".npy", ".npz", ".pkl",
	}
)

func refuseBinary(t target) error {
	ext := strings.ToLower(filepath.Ext(t.real))
	switch {
	case slices.Contains(imageTypes, ext):
		return fmt.Errorf("%s is an image; look at it with vision_analyze", t.name)
	case slices.Contains(otherBinary, ext):
		return fmt.Errorf("%s is a binary file (%s); it can't be shown as text. Use a program in the terminal that understands it", t.name, ext)
	}
	return nil
}
