package access

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rs/zerolog"

	"herald/locales"
	"herald/platforms"
	"herald/platforms/format"
	"herald/sessions"
)

// Entrance is the gate as it stands before the accounts of a profile.
type Entrance struct {
	Gate *Gate
	// Trusted reports whether an account's adapter decides itself who may come in.
	Trusted func(platforms.Account) bool
}

// Decide says whether an event may come in, and what its sender may do.
func (n Entrance) Decide(e platforms.Event) Decision {
	return n.Gate.Decide(e, n.Trusted(e.Address.AccountOf()))
}

// Named reports whether the person of a conversation is an admin by name.
func (n Entrance) Named(o sessions.Origin) bool {
	return n.Decide(platforms.Event{Address: o.Address, ChatType: o.ChatType, Scope: o.Scope, ParentChat: o.ParentChat,
		Sender: platforms.User{ID: o.User, Alt: o.UserAlt, Name: o.UserName}, Message: &platforms.Message{}}).Named
}

// Outbox makes and queues the lines that are said at the entrance.
type Outbox interface {
	Notice(at platforms.Address, markdown string) *sessions.OutboxRow
	Post(ctx context.Context, rows ...*sessions.OutboxRow) error
}

// Porter says at the entrance what is to be said: the pairing code to a stranger, and that bots have talked for too long.
type Porter struct {
	Pairing *Pairing
	// Limits are those of bots that talk to each other.
	Limits func() LoopLimits
	// Printer speaks the language of an address.
	Printer func(at platforms.Address) *locales.Printer
	Outbox  Outbox
	Log     zerolog.Logger
	Now     func() time.Time
}

// Guard counts another bot's event inside tx: bots that talk to each other without end are stopped, also over a restart.
// notice, when not nil, says so in the chat; it comes once.
func (p *Porter) Guard(tx sessions.Tx, e platforms.Event) (ok bool, notice *sessions.OutboxRow, err error) {
	limits := p.Limits()
	ok, began, err := AdmitBot(tx, limits, e, p.Now())
	if err != nil || !began {
		return ok, nil, err
	}
	p.Log.Warn().Str("platform", string(e.Address.Platform)).Str("chat", string(e.Address.Chat)).Dur("cooldown", limits.Cooldown).
		Msg("bots have talked to each other for too long; they are not answered there for a while")
	text := "🔁 " + p.Printer(e.Address).T("inbound.bot_loop", locales.Dur("time", limits.Cooldown))
	return ok, p.Outbox.Notice(e.Address, text), nil
}

// Stranger answers an unknown person's direct message with a pairing code.
func (p *Porter) Stranger(ctx context.Context, item sessions.InboxItem) {
	e := item.Event
	say := p.Printer(e.Address)
	code, err := p.Pairing.Request(ctx, e.Address.Platform, e.Sender.ID, e.Sender.Name)
	text := ""
	var wait *TooSoonError
	switch {
	case err == nil:
		text = say.T("access.pairing.code", locales.Str("code", format.Code(code.Reveal())), locales.Dur("time", CodeTTL),
			locales.Str("command", format.Code(fmt.Sprintf("herald pairing approve %s %s", e.Address.Platform, code.Reveal()))))
	case errors.As(err, &wait), errors.Is(err, ErrAlreadyApproved):
		return // they were told already; a second word would only help a guesser
	case errors.Is(err, ErrTooManyPending):
		text = say.T("access.pairing.full")
	default:
		p.Log.Error().Err(err).Msg("a pairing code could not be made")
		return
	}
	if err := p.Outbox.Post(ctx, p.Outbox.Notice(e.Address, text)); err != nil {
		p.Log.Error().Err(err).Msg("a pairing code could not be queued")
	}
}
