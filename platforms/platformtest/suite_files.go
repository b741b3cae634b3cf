package platformtest

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"herald/platforms"
)

// tinyPNG is a picture of one pixel.
var tinyPNG = []byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4\x89\x00\x00\x00\rIDATx\x9cc\xf8\xff\xff?\x00\x05\xfe\x02\xfe\xa7\x35\x81\x84\x00\x00\x00\x00IEND\xaeB`\x82")

// filesOut: every file is either visible or named in a note.
func filesOut(t *testing.T, s *stage) {
	p := s.first()
	dir := t.TempDir()
	file := func(name string, body []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, body, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	files := []platforms.Attachment{
		{Kind: platforms.Image, Name: "a.png", Path: file("a.png", tinyPNG)},
		{Kind: platforms.Image, Name: "b.png", Path: file("b.png", tinyPNG)},
		{Kind: platforms.Document, Name: "report.txt", Path: file("report.txt", []byte("numbers"))},
		{Kind: platforms.Document, Name: "gone.txt", Path: filepath.Join(dir, "gone.txt")},
	}
	word := s.word()
	receipt, err := s.send(patience, platforms.Outgoing{Address: p.Address, Text: say(word), Attachments: files})
	if err != nil {
		t.Fatal(err)
	}
	if n := s.copies(p, word); n != 1 {
		t.Errorf("the text is visible %d times, want once", n)
	}
	var shown []string
	for _, v := range s.world.Visible(p) {
		shown = append(shown, v.Files...)
	}
	all := strings.Join(shown, " ") + " " + strings.Join(receipt.Notes, " ")
	if s.adapter.Traits().Attachments && len(shown) != 3 {
		t.Errorf("%d files are visible (%v), want 3; notes %q", len(shown), shown, receipt.Notes)
	}
	if !strings.Contains(all, "report.txt") || !strings.Contains(strings.Join(receipt.Notes, " "), "gone.txt") {
		t.Errorf("a file is neither visible nor in a note: %s", all)
	}
}

// filesIn: a file that a person sends is named in the event and can be fetched, no further than asked.
func filesIn(t *testing.T, s *stage) {
	people, ok := s.world.(FileSender)
	if !ok {
		s.lacks("files of people")
	}
	fetcher, ok := s.adapter.(platforms.Fetcher)
	if !ok {
		t.Fatal("the adapter can't fetch files")
	}
	body := bytes.Repeat([]byte("0123456789"), 1000)
	word := s.word()
	people.SayFile(s.first(), "notes.txt", "text/plain", body, word)
	e := s.events(1)[0]
	if e.Message == nil || e.Message.Text != word || len(e.Message.Attachments) != 1 {
		t.Fatalf("event %s %+v, want a message with one file", e.Kind(), e.Message)
	}
	a := e.Message.Attachments[0]
	if a.Ref == "" || a.Kind != platforms.Document || a.Name != "notes.txt" {
		t.Fatalf("attachment %+v", a)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var got bytes.Buffer
	if err := fetcher.Fetch(ctx, a, int64(len(body)), &got); err != nil || !bytes.Equal(got.Bytes(), body) {
		t.Fatalf("fetched %d bytes, %v; want the %d that were sent", got.Len(), err, len(body))
	}
	got.Reset()
	a.Size = 0 // the service's claim must not be what keeps the limit
	if err := fetcher.Fetch(ctx, a, 100, &got); err == nil || got.Len() > 101 {
		t.Fatalf("fetch over the limit: %d bytes, %v; want an error", got.Len(), err)
	}
}
