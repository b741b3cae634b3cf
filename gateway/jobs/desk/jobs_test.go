package desk

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"herald/cron"
	"herald/platforms"
	"herald/sessions"
	"herald/sessions/sqlite"
)

// from is a conversation: of a person alone, or of a room.
func from(platform, chat, user string, change ...func(*sessions.Origin)) sessions.Origin {
	o := sessions.Origin{Address: platforms.Address{Platform: platforms.Name(platform), Account: "main", Chat: platforms.ChatID(chat)},
		ChatType: platforms.DM, User: platforms.UserID(user)}
	for _, c := range change {
		c(&o)
	}
	return o
}

func inRoom(o *sessions.Origin)   { o.ChatType = platforms.Group }
func together(o *sessions.Origin) { o.ChatType, o.Shared = platforms.Group, true }
func inScope(s string) func(*sessions.Origin) {
	return func(o *sessions.Origin) { o.Scope = platforms.ScopeID(s) }
}

func ptr[T any](v T) *T { return &v }

// runner begins runs as the test says.
type runner func(id cron.JobID, note string) error

func (r runner) Run(_ context.Context, id cron.JobID, note string) (sessions.Run, error) {
	return sessions.Run{}, r(id, note)
}

// P6: who may see a job, and so who may change it.
func TestViewer_MayTouch(t *testing.T) {
	book, _ := openBook(t)
	for name, c := range map[string]struct {
		job  *sessions.Origin
		who  viewer
		want bool
	}{
		"own, same direct chat":            {ptr(from("slack", "D1", "anna")), viewer{at: from("slack", "D1", "anna")}, true},
		"own, another direct chat":         {ptr(from("slack", "D1", "anna")), viewer{at: from("slack", "D2", "anna")}, true},
		"own, made alone in a room":        {ptr(from("slack", "C1", "anna", inRoom)), viewer{at: from("slack", "D1", "anna")}, true},
		"somebody else's":                  {ptr(from("slack", "D2", "bob")), viewer{at: from("slack", "D1", "anna")}, false},
		"the same id on another platform":  {ptr(from("telegram", "D1", "anna")), viewer{at: from("slack", "D1", "anna")}, false},
		"the same id in another workspace": {ptr(from("slack", "D1", "anna", inScope("T1"))), viewer{at: from("slack", "D1", "anna", inScope("T2"))}, false},
		"known by the other id":            {ptr(from("signal", "D1", "", func(o *sessions.Origin) { o.UserAlt = "uuid" })), viewer{at: from("signal", "D1", "+49", func(o *sessions.Origin) { o.UserAlt = "uuid" })}, true},
		"nobody is nobody else":            {ptr(from("slack", "D1", "")), viewer{at: from("slack", "D1", "")}, false},
		"of the shared room":               {ptr(from("slack", "C1", "bob", together)), viewer{at: from("slack", "C1", "anna", together)}, true},
		"of another room":                  {ptr(from("slack", "C2", "anna", together)), viewer{at: from("slack", "C1", "anna", together)}, false},
		"own direct ones, in a room":       {ptr(from("slack", "D1", "anna")), viewer{at: from("slack", "C1", "anna", together)}, false},
		"of a shared room, alone":          {ptr(from("slack", "C1", "anna", together)), viewer{at: from("slack", "D1", "anna")}, false},
		"another's, alone in the room":     {ptr(from("slack", "C1", "bob", inRoom)), viewer{at: from("slack", "C1", "anna", inRoom)}, false},
		"own, alone in the room":           {ptr(from("slack", "C1", "anna", inRoom)), viewer{at: from("slack", "C1", "anna", inRoom)}, true},
		"made by no chat":                  {nil, viewer{at: from("slack", "D1", "anna")}, false},
		"nowhere sees nothing":             {ptr(from("", "", "")), viewer{}, false},
		"who may see all":                  {ptr(from("slack", "D2", "bob")), viewer{all: true}, true},
		"all, made by no chat":             {nil, viewer{all: true}, true},
	} {
		require.Equal(t, c.want, c.who.mayTouch(newJob(t, book, name, c.job)), name)
	}
	require.False(t, viewer{at: from("slack", "D1", "anna")}.mayTouch(cron.Job{Plan: cron.Plan{Task: []byte(`{"origin":7}`)}}), "what can't be read is nobody's")
}

func openBook(t *testing.T) (*cron.Book, sessions.Store) {
	store, err := sqlite.Open(context.Background(), sqlite.Options{Path: filepath.Join(t.TempDir(), "herald.db")})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, store.Close()) })
	return cron.NewBook(cron.BookOptions{Store: store, Zone: func() *time.Location { return time.UTC }}), store
}

func newJob(t *testing.T, book *cron.Book, name string, origin *sessions.Origin) cron.Job {
	t.Helper()
	j, err := book.Create(t.Context(), cron.Change{Name: &name, Schedule: ptr("every hour"), Prompt: ptr("p")},
		cron.By{Source: cron.FromChat, Origin: origin})
	require.NoError(t, err)
	return j
}

// A job of somebody else is "no such job" to everything that can be asked.
func TestJobs_OthersJobsAreNotThere(t *testing.T) {
	book, _ := openBook(t)
	anna, bob := from("slack", "D1", "anna"), from("slack", "D2", "bob")
	hers, his := newJob(t, book, "news", &anna), newJob(t, book, "news", &bob)
	var ran []string
	d := &Jobs{book: book, zone: func() *time.Location { return time.UTC }, who: viewer{at: anna},
		by: cron.By{Source: cron.FromChat, Origin: &anna},
		runner: runner(func(id cron.JobID, note string) error {
			ran = append(ran, string(id)+note)
			return nil
		})}
	list, err := d.List(t.Context())
	require.NoError(t, err)
	require.Len(t, list, 1)
	j, err := d.Find(t.Context(), "news")
	require.NoError(t, err, "his job of that name does not make hers ambiguous")
	require.Equal(t, hers.ID, j.ID)
	var missing *cron.MissingError
	for name, try := range map[string]func() error{
		"find":   func() error { _, err := d.Find(t.Context(), string(his.ID)); return err },
		"update": func() error { _, err := d.Update(t.Context(), his.ID, cron.Change{Prompt: ptr("x")}); return err },
		"pause":  func() error { _, err := d.Pause(t.Context(), his.ID, ""); return err },
		"resume": func() error { _, err := d.Resume(t.Context(), his.ID); return err },
		"remove": func() error { _, err := d.Remove(t.Context(), his.ID); return err },
		"run":    func() error { return d.Run(t.Context(), his.ID, "") },
		"runs":   func() error { _, err := d.Runs(t.Context(), his.ID, 5); return err },
	} {
		require.ErrorAs(t, try(), &missing, name)
	}
	all, err := book.List(t.Context())
	require.NoError(t, err)
	require.Len(t, all, 2)
	require.Empty(t, ran)

	require.NoError(t, d.Run(t.Context(), hers.ID, " once"))
	require.Equal(t, []string{string(hers.ID) + " once"}, ran)
	made, err := d.Create(t.Context(), cron.Change{Schedule: ptr("30m"), Prompt: ptr("p")}, nil)
	require.NoError(t, err)
	task, err := made.Plan.ReadTask()
	require.NoError(t, err)
	require.Equal(t, &anna, task.Origin)
	_, err = d.Pause(t.Context(), made.ID, "")
	require.NoError(t, err)
	_, err = d.Remove(t.Context(), made.ID)
	require.NoError(t, err)
	d.runner = nil
	require.True(t, errors.Is(d.Run(t.Context(), hers.ID, ""), ErrNoScheduler))

	newJob(t, book, string(hers.ID), &bob)
	named := newJob(t, book, string(his.ID), &anna)
	_, err = d.Pause(t.Context(), his.ID, "")
	require.ErrorAs(t, err, &missing, "a job of hers that is called like his id does not open his")
	_, err = d.Pause(t.Context(), named.ID, "")
	require.NoError(t, err)
}
