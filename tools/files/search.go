package files

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"herald/tools"
	"herald/tools/sandbox"
)

// Bounds of search_files.
const (
	defaultFound = 50
	maxFound     = 1000
	maxContext   = 20
	maxScanned   = 64 << 20 // bytes of one file; longer ones are skipped and counted
	maxShown     = 500      // characters shown of one line
	maxWalked    = 500_000  // entries looked at
	warnRepeat   = 3
	blockRepeat  = 4
)

type searchArgs struct {
	Pattern    string `json:"pattern"`
	Target     string `json:"target"`
	Path       string `json:"path"`
	FileGlob   string `json:"file_glob"`
	Limit      *int   `json:"limit"`
	Offset     int    `json:"offset"`
	OutputMode string `json:"output_mode"`
	Context    int    `json:"context"`
}

// hit is one matching line.
type hit struct {
	Path    string   `json:"path"`
	Line    int      `json:"line"`
	Content string   `json:"content"`
	Before  []string `json:"before,omitempty"`
	After   []string `json:"after,omitempty"`
}

// count is how many lines match in a file.
type count struct {
	Path  string `json:"path"`
	Count int    `json:"count"`
}

type searchResult struct {
	Matches    []hit    `json:"matches,omitzero"`
	Files      []string `json:"files,omitzero"`
	Counts     []count  `json:"counts,omitzero"`
	Returned   int      `json:"returned"`
	Truncated  bool     `json:"truncated,omitempty"`
	NextOffset int      `json:"next_offset,omitempty"`
	Omitted    int      `json:"_omitted,omitempty"`       // files that may not be read
	TooLarge   int      `json:"_too_large,omitempty"`     // files longer than what is scanned
	Unreadable int      `json:"_unreadable,omitempty"`    // files and directories that could not be opened
	Incomplete bool     `json:"_stopped_early,omitempty"` // too many entries
	Hint       string   `json:"_hint,omitempty"`
	Warning    string   `json:"_warning,omitempty"`
}

const searchSchema = `{
  "type": "object",
  "properties": {
    "pattern": {"type": "string", "minLength": 1, "description": "content: a regular expression (RE2). files: a name pattern such as *.go or src/**/test_*; without * or ? it finds names that contain it."},
    "target": {"type": "string", "enum": ["content", "files", "grep", "find"], "default": "content", "description": "Search in files, or for files by name."},
    "path": {"type": "string", "default": ".", "description": "Directory or file to search."},
    "file_glob": {"type": "string", "description": "content: only files whose name (or, with a slash, path) matches, such as *.{ts,tsx}."},
    "limit": {"type": "integer", "minimum": 1, "maximum": 1000, "default": 50, "description": "Number of results."},
    "offset": {"type": "integer", "minimum": 0, "default": 0, "description": "Results to skip, for the next page."},
    "output_mode": {"type": "string", "enum": ["content", "files_only", "count"], "default": "content", "description": "Matching lines, names of matching files, or numbers of matching lines."},
    "context": {"type": "integer", "minimum": 0, "maximum": 20, "default": 0, "description": "Lines shown before and after each match."}
  },
  "required": ["pattern"],
  "additionalProperties": false
}`

func (f *Family) searchTool() tools.Tool {
	return tools.Tool{
		Spec: tools.Spec{
			Name: "search_files", Toolset: "file", Core: true, ReadOnly: true, Emoji: "🔎", Preview: "pattern",
			Description: "Search file contents by regular expression, or find files by name (newest first). What .gitignore and .ignore files exclude is skipped, and so are binary files and the data of version control.",
			Parameters:  json.RawMessage(searchSchema), Parallel: tools.PathScoped, Paths: f.scopes(false, "."),
		},
		Run: f.search,
	}
}

// query is a checked search.
type query struct {
	searchArgs
	limit int
	text  *regexp.Regexp // target content
	quick bool           // text may be tried on a whole file first
	name  *regexp.Regexp // target files, or the file glob; nil takes all
	path  bool           // name is matched with the path from the root of the search
}

func (a searchArgs) check() (query, error) {
	q := query{searchArgs: a, limit: defaultFound}
	if q.Pattern == "" {
		return q, errors.New("pattern is empty; give what to search for")
	}
	switch q.Target {
	case "", "content", "grep":
		q.Target = "content"
	case "files", "find":
		q.Target = "files"
	default:
		return q, fmt.Errorf("target: %q is not known; allowed are content and files", q.Target)
	}
	switch q.OutputMode {
	case "", "content":
		q.OutputMode = "content"
	case "files_only", "files_with_matches":
		q.OutputMode = "files_only"
	case "count":
	default:
		return q, fmt.Errorf("output_mode: %q is not known; allowed are content, files_only and count", q.OutputMode)
	}
	if a.Limit != nil {
		q.limit = *a.Limit
	}
	switch {
	case q.limit < 1 || q.limit > maxFound:
		return q, fmt.Errorf("limit: %d is not allowed; give 1 to %d", q.limit, maxFound)
	case q.Offset < 0:
		return q, fmt.Errorf("offset: %d is not allowed; it counts from 0", q.Offset)
	case q.Context < 0 || q.Context > maxContext:
		return q, fmt.Errorf("context: %d is not allowed; give 0 to %d lines", q.Context, maxContext)
	}
	if q.Path == "" {
		q.Path = "."
	}
	return q, q.compile()
}

func (q *query) compile() error {
	glob := q.FileGlob
	if q.Target == "files" {
		glob = q.Pattern
		if !strings.ContainsAny(glob, "*?[{") {
			glob = "*" + glob + "*"
			if strings.Contains(q.Pattern, "/") {
				glob = "**/" + glob + "*"
			}
		}
	} else {
		re, err := regexp.Compile(`(?m:` + q.Pattern + `)`)
		if err != nil {
			return fmt.Errorf("pattern: %q is not a valid regular expression: %s. To search for the text as it stands put a backslash before each of \\.+*?()|[]{}^$", q.Pattern, strings.TrimPrefix(err.Error(), "error parsing regexp: "))
		}
		q.text = re
		// Whatever matches in a line matches in the file as well, unless the pattern speaks about
		// the ends of the text or changes flags.
		q.quick = !strings.Contains(q.Pattern, "(?") && !strings.Contains(q.Pattern, `\A`) && !strings.Contains(q.Pattern, `\z`)
	}
	if glob == "" {
		return nil
	}
	q.path = strings.Contains(glob, "/")
	if q.path && !strings.HasPrefix(glob, "/") && !strings.HasPrefix(glob, "**/") && q.Target == "content" {
		glob = "**/" + glob
	}
	name, err := compileGlob(strings.TrimPrefix(glob, "/"))
	if err != nil {
		return err
	}
	q.name = name
	return nil
}

func (f *Family) search(ctx context.Context, call tools.Call) (tools.Result, error) {
	var a searchArgs
	if err := decode(call, &a); err != nil {
		return tools.Result{}, err
	}
	q, err := a.check()
	if err != nil {
		return fail(err)
	}
	asked := f.tracker.searched(call.Caller.Session, fmt.Sprintf("%+v %d", q.searchArgs, q.limit))
	if asked >= blockRepeat {
		return tools.Failure("BLOCKED: the same search was asked %d times in a row. Its results are above; change the pattern or the path, or go on with what you have.", asked), nil
	}
	p, err := f.place(call.Caller)
	if err != nil {
		return fail(err)
	}
	t, err := p.target(ctx, q.Path)
	if err != nil {
		return fail(err)
	}
	g := f.guard(ctx, p)
	if err := mayRead(g, t, false); err != nil {
		return fail(err)
	}
	info, err := p.env.Stat(ctx, t.real)
	if err != nil {
		return fail(f.missing(ctx, p, t, err))
	}
	s := &searcher{q: q, p: p, g: g, root: t, want: q.Offset + q.limit + 1}
	if err := s.run(ctx, info); err != nil {
		return fail(describe(q.Path, err))
	}
	r := s.result()
	if asked >= warnRepeat {
		r.Warning = fmt.Sprintf("This is the same search for the %s time in a row, with the same results. The next one will be blocked.", map[int]string{3: "third"}[asked])
	}
	return tools.JSON(r), nil
}

// searcher walks the files and collects results. It stops as soon as the page is full, except where all
// must be known to put them in order.
type searcher struct {
	q    query
	p    place
	g    *guard
	root target
	want int

	walked int
	hits   []hit
	names  []named
	counts []count
	r      searchResult
}

// named is a found file.
type named struct {
	path string
	info sandbox.FileInfo
}

// errEnough ends a walk.
var errEnough = errors.New("enough")

func (s *searcher) run(ctx context.Context, info sandbox.FileInfo) error {
	var err error
	if info.IsDir() {
		err = s.walk(ctx, s.root.real, outerIgnores(ctx, s.p.env, s.root.real))
	} else {
		err = s.file(ctx, s.root.real, info)
	}
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// walk goes through a directory in order of names. Links are not followed: a file has one name, and nothing
// outside is reached.
func (s *searcher) walk(ctx context.Context, dir string, rules *ignores) error {
	entries, err := s.p.env.List(ctx, dir)
	if err != nil {
		if ctx.Err() != nil || dir == s.root.real {
			return err
		}
		s.r.Unreadable++
		return nil
	}
	rules = rules.enter(ctx, s.p.env, dir, func(name string) bool {
		_, ok := slices.BinarySearchFunc(entries, name, func(e sandbox.FileInfo, n string) int { return strings.Compare(e.Name, n) })
		return ok
	})
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return err
		}
		if s.walked++; s.walked > maxWalked {
			s.r.Incomplete = true
			return errEnough
		}
		path := filepath.Join(dir, e.Name)
		if rules.match(path, e.IsDir()) {
			continue
		}
		switch {
		case e.IsDir():
			if versionControl[e.Name] || device(path) || path == "/proc" || path == "/sys" {
				continue
			}
			if s.g.read(path, false) != "" {
				s.r.Omitted++
				continue
			}
			err = s.walk(ctx, path, rules)
		case e.IsRegular():
			err = s.file(ctx, path, e)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// file looks at one file.
func (s *searcher) file(ctx context.Context, path string, info sandbox.FileInfo) error {
	if !s.named(path) {
		return nil
	}
	if s.g.read(path, false) != "" {
		s.r.Omitted++
		return nil
	}
	if s.q.Target == "files" {
		s.names = append(s.names, named{path, info})
		return nil
	}
	b, err := s.p.env.ReadFile(ctx, path, maxScanned)
	switch {
	case errors.Is(err, sandbox.ErrTooLarge):
		s.r.TooLarge++
		return nil
	case err != nil && ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, fs.ErrNotExist):
		return nil // it vanished meanwhile
	case err != nil:
		s.r.Unreadable++
		return nil
	}
	if bytes.IndexByte(b[:min(len(b), sniffed)], 0) >= 0 || s.q.quick && !s.q.text.Match(b) {
		return nil
	}
	return s.scan(ctx, path, b)
}

func (s *searcher) named(path string) bool {
	if s.q.name == nil {
		return true
	}
	if !s.q.path {
		return s.q.name.MatchString(filepath.Base(path))
	}
	rel, ok := below(s.root.real, path)
	return ok && s.q.name.MatchString(rel)
}

// scan goes through the lines of a file.
func (s *searcher) scan(ctx context.Context, path string, b []byte) error {
	shown := s.p.display(path)
	n, matched := 0, 0
	for from := 0; from < len(b); {
		to := len(b)
		if i := bytes.IndexByte(b[from:], '\n'); i >= 0 {
			to = from + i
		}
		n++
		if n%10_000 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if line := bytes.TrimSuffix(b[from:to], []byte("\r")); s.q.text.Match(line) {
			matched++
			switch s.q.OutputMode {
			case "files_only":
				s.names = append(s.names, named{path: path})
				if len(s.names) >= s.want {
					return errEnough
				}
				return nil
			case "content":
				s.hits = append(s.hits, s.hit(shown, n, b, from, to))
				if len(s.hits) >= s.want {
					return errEnough
				}
			}
		}
		from = to + 1
	}
	if s.q.OutputMode == "count" && matched > 0 {
		s.counts = append(s.counts, count{shown, matched})
		if len(s.counts) >= s.want {
			return errEnough
		}
	}
	return nil
}

// hit formats a match with its context.
func (s *searcher) hit(path string, n int, b []byte, from, to int) hit {
	h := hit{Path: path, Line: n, Content: shownLine(b[from:to])}
	if s.q.Context == 0 {
		return h
	}
	for at := from - 1; at >= 0 && len(h.Before) < s.q.Context; {
		begin := bytes.LastIndexByte(b[:at], '\n') + 1
		h.Before = append(h.Before, shownLine(b[begin:at]))
		at = begin - 1
	}
	slices.Reverse(h.Before)
	for at := to + 1; at < len(b) && len(h.After) < s.q.Context; {
		end := len(b)
		if i := bytes.IndexByte(b[at:], '\n'); i >= 0 {
			end = at + i
		}
		h.After = append(h.After, shownLine(b[at:end]))
		at = end + 1
	}
	return h
}

func shownLine(b []byte) string {
	cut := len(b) > 4*maxShown
	if cut {
		b = b[:4*maxShown]
	}
	r := []rune(strings.ToValidUTF8(strings.TrimRight(string(b), "\r"), "\uFFFD"))
	if len(r) > maxShown {
		r, cut = r[:maxShown], true
	}
	if cut {
		return string(r) + " … [line cut]"
	}
	return string(r)
}

// result cuts the page out of what was found.
func (s *searcher) result() searchResult {
	r := s.r
	total := 0
	switch {
	case s.q.Target == "files":
		slices.SortStableFunc(s.names, func(a, b named) int {
			if c := b.info.ModTime.Compare(a.info.ModTime); c != 0 {
				return c
			}
			return strings.Compare(a.path, b.path)
		})
		fallthrough
	case s.q.OutputMode == "files_only":
		total = len(s.names)
		r.Files = []string{}
		for _, n := range page(s.names, s.q) {
			r.Files = append(r.Files, s.p.display(n.path))
		}
		r.Returned = len(r.Files)
	case s.q.OutputMode == "count":
		total = len(s.counts)
		r.Counts = page(s.counts, s.q)
		r.Returned = len(r.Counts)
	default:
		total = len(s.hits)
		r.Matches = page(s.hits, s.q)
		r.Returned = len(r.Matches)
	}
	if next := s.q.Offset + r.Returned; r.Returned > 0 && total > next {
		r.Truncated, r.NextOffset = true, next
		r.Hint = fmt.Sprintf("There are more results. For the next ones ask again with offset=%d, or narrow the search.", next)
	}
	return r
}

// page returns the part that was asked for; never nil, so that an empty list shows as one.
func page[T any](all []T, q query) []T {
	from := min(q.Offset, len(all))
	out := all[from:min(from+q.limit, len(all))]
	if out == nil {
		out = []T{}
	}
	return out
}
