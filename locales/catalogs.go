package locales

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"
	"golang.org/x/text/language"
)

//go:embed catalogs/*.yaml
var bundled embed.FS

// Source is the language that is always complete.
const Source = "en"

// maxOverlay is the most bytes that an overlay file may have.
const maxOverlay = 4 << 20

// Options are what New can be given. The zero value is usable.
type Options struct {
	// Overlay is a directory with <language>.yaml files whose texts replace the bundled ones. Empty or missing: none.
	Overlay string
	// Problem is told once about each overlay that can't be used, and why. nil: nobody is.
	Problem func(error)
}

// Catalogs holds the texts of all languages. It is safe for concurrent use.
type Catalogs struct {
	options Options
	names   []string
	mu      sync.Mutex
	loaded  map[string]*catalog
}

// catalog is one language's texts, the overlay's above the bundled ones.
type catalog struct {
	lang  string
	tag   language.Tag
	texts map[string]string
}

// New lists the bundled languages. It reads no catalog.
func New(o Options) (*Catalogs, error) {
	entries, err := bundled.ReadDir("catalogs")
	if err != nil {
		return nil, fmt.Errorf("bundled catalogs: %w", err)
	}
	c := &Catalogs{options: o, loaded: map[string]*catalog{}}
	for _, e := range entries {
		c.names = append(c.names, strings.TrimSuffix(e.Name(), ".yaml"))
	}
	return c, nil
}

// Languages returns the tags of the bundled languages, sorted.
func (c *Catalogs) Languages() []string { return slices.Clone(c.names) }

// Printer returns the printer of a language. name is a tag or a name, such as "de", "de-AT", "German" or "Deutsch";
// an unknown or empty one gives English.
func (c *Catalogs) Printer(name string) *Printer {
	lang := Resolve(name)
	if !slices.Contains(c.names, lang) {
		lang = Source
	}
	return &Printer{all: c, own: c.get(lang)}
}

// Choose returns the printer of the first name that is not empty: the explicit choice, then the variable, then the
// configuration.
func (c *Catalogs) Choose(names ...string) *Printer {
	for _, n := range names {
		if strings.TrimSpace(n) != "" {
			return c.Printer(n)
		}
	}
	return c.Printer(Source)
}

// Reload forgets all texts, so that changed overlays are read again. Printers that exist keep their old texts.
func (c *Catalogs) Reload() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.loaded)
}

// Loaded returns the languages that have been read so far, sorted.
func (c *Catalogs) Loaded() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out []string
	for l := range c.loaded {
		out = append(out, l)
	}
	slices.Sort(out)
	return out
}

// get returns a bundled language's catalog, and reads it the first time.
func (c *Catalogs) get(lang string) *catalog {
	c.mu.Lock()
	defer c.mu.Unlock()
	if cat, ok := c.loaded[lang]; ok {
		return cat
	}
	cat := &catalog{lang: lang, tag: language.Make(tagOf(lang))}
	texts, err := readBundled(lang)
	if err != nil {
		panic(err) // a test reads them all
	}
	cat.texts = texts
	c.overlay(cat)
	c.loaded[lang] = cat
	return cat
}

func readBundled(lang string) (map[string]string, error) {
	data, err := bundled.ReadFile("catalogs/" + lang + ".yaml")
	if err != nil {
		return nil, err
	}
	texts, err := parseLines(string(data))
	if err != nil {
		return nil, fmt.Errorf("bundled catalog %s: %w", lang, err)
	}
	return texts, nil
}

// parseLines reads a bundled catalog. They are YAML of one form, a key and a double-quoted text on each line, so that a
// start need not wait for a YAML parser (2.5 ms); a test holds that both readings are the same.
func parseLines(data string) (map[string]string, error) {
	texts := make(map[string]string, strings.Count(data, "\n"))
	number := 0
	for line := range strings.Lines(data) {
		number++
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		key, quoted, ok := strings.Cut(line, ": ")
		text, err := strconv.Unquote(quoted)
		if !ok || err != nil || quoted[0] != '"' {
			return nil, fmt.Errorf("line %d: want key: \"text\"", number)
		}
		if _, twice := texts[key]; twice {
			return nil, fmt.Errorf("line %d: %s stands twice", number, key)
		}
		texts[key] = text
	}
	return texts, nil
}

// overlay puts the operator's texts above the bundled ones.
func (c *Catalogs) overlay(cat *catalog) {
	if c.options.Overlay == "" {
		return
	}
	name := filepath.Join(c.options.Overlay, cat.lang+".yaml")
	texts, err := readOverlay(name)
	if err != nil {
		if c.options.Problem != nil {
			c.options.Problem(fmt.Errorf("texts of %s are not used: %w", name, err))
		}
		return
	}
	for k, v := range texts {
		cat.texts[k] = v
	}
}

func readOverlay(name string) (map[string]string, error) {
	info, err := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	case info.Size() > maxOverlay:
		return nil, errors.New("the file is larger than 4 MiB")
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	return parse(data)
}

// parse reads a catalog: one mapping of keys to texts.
func parse(data []byte) (map[string]string, error) {
	var texts map[string]string
	if err := yaml.Unmarshal(data, &texts); err != nil {
		return nil, err
	}
	return texts, nil
}

// tagOf is the language tag of a catalog's name.
func tagOf(lang string) string {
	if lang == "zh-hant" {
		return "zh-Hant"
	}
	return lang
}
