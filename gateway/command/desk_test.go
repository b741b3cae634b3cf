package command_test

import (
	"context"
	"errors"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"herald/gateway/access"
	"herald/gateway/agent"
	"herald/gateway/command"
	"herald/gateway/model"
	"herald/gateway/router"
	rt "herald/gateway/router/routertest"
	"herald/locales"
	"herald/platforms"
	"herald/sessions"
)

func TestMain(m *testing.M) {
	flag.Parse()
	if f := flag.Lookup("rapid.checks"); f.Value.String() == f.DefValue {
		_ = f.Value.Set("8") // each check is a whole store
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(os.Exit))
}

// desk is what the commands of a test work with besides the rig.
type desk struct {
	reg     *command.Registry
	user    bool            // the sender is no admin
	allowed map[string]bool // to users; nil: everything
	clicks  []string
	focus   string
	// bystander: the sender may not decide what waits.
	bystander bool
}

func (d *desk) Resolve(name string) (string, model.Info, error) {
	if name == "good" {
		return "test/good", model.Info{Provider: "test", Name: "good"}, nil
	}
	return "", model.Info{}, errors.New("no such model")
}

func (d *desk) Current(override string) model.Info {
	if override != "" {
		return model.Info{Provider: "test", Name: strings.TrimPrefix(override, "test/"), Context: 1000}
	}
	return model.Info{Provider: "test", Name: "scripted", Context: 1000}
}
func (d *desk) Known() []string                 { return []string{"test/scripted", "test/good"} }
func (d *desk) Version() string                 { return "v1" }
func (d *desk) Lines(*locales.Printer) []string { return []string{"an account"} }
func (d *desk) tier(platforms.Event) access.Tier {
	if d.user {
		return access.TierUser
	}
	return access.TierAdmin
}

func (d *desk) commands(t *testing.T) func(*rt.Rig) router.Commands {
	catalogs, err := locales.New(locales.Options{})
	require.NoError(t, err)
	printer := catalogs.Choose("en")
	return func(r *rt.Rig) router.Commands {
		return d.made(t, r, func(s *command.Services) {
			s.Printer = func(platforms.Address) *locales.Printer { return printer }
		})
	}
}

// made makes the commands of a rig. change sets what is special.
func (d *desk) made(_ *testing.T, r *rt.Rig, change func(*command.Services)) router.Commands {
	s := command.Services{
		Store: r.Store,
		Render: func(at platforms.Address, text string) []*sessions.OutboxRow {
			return []*sessions.OutboxRow{rt.Row(at, text)}
		},
		Take: r.Worker.Take, Origin: func(e platforms.Event) sessions.Origin { return sessions.OriginOf(e, sessions.DefaultKeyOptions()) },
		Tier: d.tier, May: func(_ platforms.Event, name string) bool { return !d.user || d.allowed == nil || d.allowed[name] },
		SetHome: func(tx sessions.Tx, e platforms.Event, off bool) error {
			return tx.SetValue("home", string(e.Address.Platform), nil, e.At)
		},
		Named: func(platforms.Event) bool { return !d.user }, Forget: r.Runner.Invalidate, Models: d, Status: d,
		Compress: func(ctx context.Context, _ string, rows []sessions.Message, focus string) (string, error) {
			d.focus = focus
			return agent.Summarise(ctx, r.Model, rows, focus)
		},
		MayDecide: func(platforms.Event, platforms.UserID) bool { return !d.bystander }, Decide: r.Asker.Decide, Wake: r.Asker.Wake,
		Resend: r.Worker.Resend, AnswerAsk: r.Asker.AnswerClick,
		AnswerClick: func(_ platforms.Address, _ platforms.Click, text string) { d.clicks = append(d.clicks, text) },
		BusyMode:    func(platforms.Address) string { return "queue" }, Progress: func(platforms.Address) string { return "all" }, Log: zerolog.Nop(),
	}
	change(&s)
	d.reg = command.New(s)
	return d.reg
}

// at runs a test with all commands.
func at(t *testing.T, fn func(t *testing.T, r *rt.Rig, d *desk)) {
	t.Helper()
	d := &desk{}
	rt.Within(t, rt.Options{Commands: d.commands(t)}, func(t *testing.T, r *rt.Rig) { fn(t, r, d) })
}

// ask says something and returns the newest message of the chat.
func ask(r *rt.Rig, chat, text string) string {
	before := len(r.Chat.Shown(chat))
	r.Say(chat, text)
	if len(r.Chat.Shown(chat)) == before {
		return ""
	}
	return r.Chat.Last(chat)
}

// again puts a command's row back as if its process had been killed before it was done with it, and starts the next.
func again(r *rt.Rig, text string) {
	var id sessions.InboxID
	r.View(func(v sessions.View) error {
		for i := sessions.InboxID(1); i < 200; i++ {
			item, err := v.InboxItem(i)
			if err == nil && item.Event.Message != nil && item.Event.Message.Text == text {
				id = i
			}
		}
		return nil
	})
	require.NotZero(r.T, id)
	item := r.Inbox(id)
	require.NoError(r.T, r.Router.Do(r.T.Context(), item.Key, func(c *router.Control) {
		cmd, ok := r.Commands.Parse(item.Event)
		require.True(r.T, ok)
		r.Commands.Run(r.T.Context(), cmd, item, c)
	}))
	r.Settle()
}
