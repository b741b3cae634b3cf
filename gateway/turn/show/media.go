package show

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"mime"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"herald/platforms"
	"herald/sessions"
)

// mediaTag matches a MEDIA:<absolute path> directive: a line of its own, or in the middle of one up to white
// space. Backticks and quotes around the path are tolerated.
var mediaTag = regexp.MustCompile("(?m)[ \t]*(?:`{0,3})MEDIA:[ \t]*(?:\"([^\"\n]+)\"|'([^'\n]+)'|`([^`\n]+)`|([^\\s`\"']+))(?:`{0,3})[ \t]*")

var voiceTag = regexp.MustCompile(`(?i)\[\[audio_as_voice\]\]`)
var documentTag = regexp.MustCompile(`(?i)\[\[as_document\]\]`)

// media is one file that an answer asks to send.
type media struct {
	path     string
	voice    bool
	document bool
}

func (m media) name() string { return filepath.Base(m.path) }

// takeMedia removes MEDIA tags and their modifiers from the text and returns the files.
func takeMedia(text string) (string, []media) {
	if !strings.Contains(text, "MEDIA:") && !strings.Contains(text, "[[") {
		return text, nil
	}
	voice, document := voiceTag.MatchString(text), documentTag.MatchString(text)
	text = voiceTag.ReplaceAllString(documentTag.ReplaceAllString(text, ""), "")
	var found []media
	for _, m := range mediaTag.FindAllStringSubmatch(text, -1) {
		path := m[1] + m[2] + m[3] + strings.TrimRight(m[4], ".,;:!?)")
		if path == "" {
			continue // a tag with nothing but punctuation behind it
		}
		found = append(found, media{path: path, voice: voice, document: document})
	}
	text = mediaTag.ReplaceAllString(text, "")
	return strings.TrimSpace(collapse.ReplaceAllString(text, "\n\n")), found
}

// StripMedia returns a text without its MEDIA tags.
func StripMedia(text string) string {
	text, _ = takeMedia(text)
	return text
}

var collapse = regexp.MustCompile(`\n{3,}`)

// stripMedia removes MEDIA tags from a growing text, a half-written one at its end included: paths are
// never shown.
func stripMedia(text string) string {
	if !strings.Contains(text, "MEDIA") && !strings.Contains(text, "[[") {
		return text
	}
	text, _ = takeMedia(text)
	if i := strings.LastIndex(text, "MEDIA:"); i >= 0 {
		text = text[:i]
	}
	return text
}

// MediaPolicy decides which local files an answer may send.
type MediaPolicy struct {
	// Roots are directories whose files may always be sent (the cache).
	Roots []string
	// AllowDirs are further ones that the operator trusts.
	AllowDirs []string
	// Strict allows nothing else but files made within Recent.
	Strict bool
	Recent time.Duration
	// Denied reports paths that must never leave, such as credentials; it is asked first, with the
	// resolved path.
	Denied func(path string) bool
	// MaxBytes bounds one file; 0 means no bound.
	MaxBytes int64
	// Resolve returns where a file that a conversation's tools named is on this machine; nil changes nothing. The
	// conversation is told by its key: files are delivered after what a turn knows is gone. An error says why there is
	// none, in words for people.
	Resolve func(ctx context.Context, of sessions.Key, path string) (string, error)
}

// Refused is a file that was to be sent and stays here.
type Refused struct{ Name, Reason string }

// Attach takes the MEDIA tags out of a text for a place whose platform has these traits, and returns the files that may
// go there, checked, and those that may not, with the reason for people and for who wrote the text. The platform's own
// limits are the adapter's matter: they may differ from room to room. ctx bounds what Resolve does for the conversation
// of a key.
func (p MediaPolicy) Attach(ctx context.Context, of sessions.Key, text string, at platforms.Name, traits platforms.Traits,
	now time.Time) (rest string, files []platforms.Attachment, refused []Refused) {
	rest, tags := takeMedia(text)
	for _, m := range tags {
		a, err := p.resolve(ctx, of, m, now)
		switch {
		case err != nil:
		case !traits.Attachments:
			err = fmt.Errorf("%s can't carry files", at)
		}
		if err != nil {
			refused = append(refused, Refused{m.name(), err.Error()})
			continue
		}
		files = append(files, a)
	}
	return rest, files, refused
}

// resolve is Allow of a file that may be in a sandbox. It keeps the name that it has there.
func (p MediaPolicy) resolve(ctx context.Context, of sessions.Key, m media, now time.Time) (platforms.Attachment, error) {
	name := m.name()
	if p.Resolve != nil {
		path, err := p.Resolve(ctx, of, m.path)
		if err != nil {
			return platforms.Attachment{}, err
		}
		m.path = path
	}
	a, err := p.Allow(m, now)
	if err == nil {
		a.Name = platforms.SafeName(name)
	}
	return a, err
}

// Undelivered tells the model which files did not go out; "" for none.
func Undelivered(refused []Refused) string {
	if len(refused) == 0 {
		return ""
	}
	lines := make([]string, len(refused))
	for i, r := range refused {
		lines[i] = fmt.Sprintf("%q: %s", r.Name, r.Reason)
	}
	return "[Herald did not send these files of yours, and has told the people so: " + strings.Join(lines, "; ") + "]"
}

// Allow checks one file and describes it for sending. The error says why not, in words for people.
func (p MediaPolicy) Allow(m media, now time.Time) (platforms.Attachment, error) {
	path := m.path
	if !filepath.IsAbs(path) {
		return platforms.Attachment{}, errors.New("the path is not absolute")
	}
	real, err := filepath.EvalSymlinks(path)
	if errors.Is(err, fs.ErrNotExist) {
		return platforms.Attachment{}, errors.New("there is no such file")
	}
	if err != nil {
		return platforms.Attachment{}, errors.New("the file can't be read")
	}
	info, err := os.Stat(real)
	switch {
	case err != nil:
		return platforms.Attachment{}, errors.New("the file can't be read")
	case !info.Mode().IsRegular():
		return platforms.Attachment{}, errors.New("it is not a regular file")
	case p.Denied != nil && p.Denied(real):
		return platforms.Attachment{}, errors.New("this file is protected")
	case p.MaxBytes > 0 && info.Size() > p.MaxBytes:
		return platforms.Attachment{}, fmt.Errorf("it has %d bytes, the limit is %d", info.Size(), p.MaxBytes)
	}
	if p.Strict && !within(real, p.Roots) && !within(real, p.AllowDirs) && now.Sub(info.ModTime()) > p.Recent {
		return platforms.Attachment{}, errors.New("only files in the cache, in gateway.media_delivery_allow_dirs or made just now may be sent (gateway.strict)")
	}
	kind := mime.TypeByExtension(strings.ToLower(filepath.Ext(real)))
	return platforms.Attachment{Kind: kindOf(kind, m), Name: platforms.SafeName(filepath.Base(path)), MIME: kind, Size: info.Size(),
		Path: real, AsDocument: m.document}, nil
}

func within(path string, dirs []string) bool {
	for _, dir := range dirs {
		if real, err := filepath.EvalSymlinks(dir); err == nil {
			dir = real
		}
		if rel, err := filepath.Rel(dir, path); err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
			return true
		}
	}
	return false
}

func kindOf(mimeType string, m media) platforms.AttachmentKind {
	switch {
	case m.document:
		return platforms.Document
	case strings.HasPrefix(mimeType, "image/svg"):
		return platforms.Document
	case strings.HasPrefix(mimeType, "image/"):
		return platforms.Image
	case strings.HasPrefix(mimeType, "video/"):
		return platforms.Video
	case strings.HasPrefix(mimeType, "audio/") && m.voice:
		return platforms.Voice
	case strings.HasPrefix(mimeType, "audio/"):
		return platforms.Audio
	}
	return platforms.Document
}
