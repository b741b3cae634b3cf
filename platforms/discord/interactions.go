package discord

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/bwmarrin/discordgo"

	"herald/platforms"
	"herald/platforms/wire"
)

const (
	// pendingKept is how many interactions are remembered.
	pendingKept = 1024
	// ackTime bounds the confirmation of an interaction; Discord waits 3 seconds.
	ackTime = 10 * time.Second
	// replayLimit is how old a replayed interaction may be: Discord has told its person after 3 seconds that it failed,
	// and a command that runs minutes later is a surprise.
	replayLimit = 10 * time.Second
	// privateFlag shows a message to one person only.
	privateFlag = discordgo.MessageFlagsEphemeral
)

// pending is an interaction that was confirmed, or is being.
type pending struct {
	id, token string
	command   bool
	dm        bool
	at        platforms.Address
	acked     chan struct{} // closed when err is known
	err       error
	used      bool // the placeholder of a command has its answer
}

// interactions remembers what people did that may still be answered.
type interactions struct {
	a *Adapter

	mu    sync.Mutex
	by    map[string]*pending // by token
	order []string
}

func newInteractions(a *Adapter) *interactions {
	return &interactions{a: a, by: map[string]*pending{}}
}

func (s *interactions) add(p *pending) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.by[p.token] == nil {
		if s.order = append(s.order, p.token); len(s.order) > pendingKept {
			delete(s.by, s.order[0])
			s.order = s.order[1:]
		}
	}
	s.by[p.token] = p
}

func (s *interactions) find(token string) *pending {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.by[token]
}

func (s *interactions) drop(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.by, token)
}

// use takes the placeholder of a command, once.
func (s *interactions) use(p *pending) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p == nil || !p.command || p.used {
		return false
	}
	p.used = true
	return true
}

// settle takes away the placeholders of commands whose answer came as an ordinary message of the same place.
func (s *interactions) settle(at platforms.Address) {
	s.mu.Lock()
	var done []*pending
	for _, p := range s.by {
		if p.command && !p.used && p.at == at {
			p.used = true
			done = append(done, p)
		}
	}
	s.mu.Unlock()
	for _, p := range done {
		s.a.beside(func(ctx context.Context) {
			if s.await(ctx, p) != nil {
				return
			}
			app := s.a.me().app
			err := s.a.do(ctx, call{
				method: http.MethodDelete, route: "/webhooks/{app}/{token}/messages/@original", major: p.token,
				path: "/webhooks/" + app + "/" + p.token + "/messages/@original", open: true,
			}, nil)
			if err != nil {
				s.a.s.Log.Debug().Err(err).Msg("the placeholder of a command could not be taken away")
			}
		})
	}
}

// await returns what became of the confirmation of an interaction.
func (s *interactions) await(ctx context.Context, p *pending) error {
	if p == nil {
		return nil // of an earlier process
	}
	select {
	case <-p.acked:
		return p.err
	case <-ctx.Done():
		return &platforms.SendError{Kind: platforms.Transient, Err: ctx.Err()}
	}
}

// onInteraction hands a command or a press on, and confirms it to Discord once the core has it.
func (a *Adapter) onInteraction(ctx context.Context, l *link, f frame) error {
	i, err := decode[interaction](f.D)
	if err != nil {
		return &decodeError{err}
	}
	if err := checkIDs(i.ID, i.ChannelID, i.GuildID); err != nil {
		return err
	}
	commands := i.Type == discordgo.InteractionApplicationCommand || i.Type == discordgo.InteractionApplicationCommandAutocomplete
	if commands && a.s.NoCommands {
		a.s.Metrics.Dropped(dropCommands)
		return nil
	}
	p := a.interactionPlace(i)
	switch {
	case l.replay && time.Since(when(i.ID)) > replayLimit:
		a.s.Metrics.Dropped(dropLate)
		a.s.Log.Info().Dur("age", time.Since(when(i.ID))).Msg("a command or press came while there was no connection; Discord has told its person that it failed")
		return nil
	case i.Type == discordgo.InteractionApplicationCommandAutocomplete:
		a.beside(func(ctx context.Context) { a.complete(ctx, i) })
		return nil
	case i.Type != discordgo.InteractionApplicationCommand && i.Type != discordgo.InteractionMessageComponent:
		a.s.Metrics.Dropped(dropService)
		return nil
	case !p.dm() && !a.answersIn(p):
		a.s.Metrics.Dropped(dropChannel)
		a.beside(func(ctx context.Context) {
			_ = a.callback(ctx, i.ID, i.Token, map[string]any{"type": discordgo.InteractionResponseChannelMessageWithSource,
				"data": map[string]any{"content": "I don't answer in this channel.", "flags": privateFlag}})
		})
		return nil
	}
	e, ok := a.interactionEvent(i, p)
	if !ok {
		a.s.Metrics.Dropped(dropEmpty)
		return nil
	}
	if p.dm() && a.s.LookupRoles {
		if e.Sender.Roles, err = a.rolesOf(ctx, string(e.Sender.ID)); err != nil {
			return &lookupError{err}
		}
	}
	w := &pending{id: i.ID, token: i.Token, command: e.Command != nil, dm: p.dm(), at: e.Address, acked: make(chan struct{})}
	a.interactions.add(w)
	if err := l.sink.Accept(ctx, e); err != nil {
		a.interactions.drop(i.Token)
		return err
	}
	if !a.beside(func(ctx context.Context) { a.confirm(ctx, w) }) {
		w.err = platforms.Failure(platforms.Transient, "the daemon was stopping")
		close(w.acked)
	}
	return nil
}

// interactionPlace returns where an interaction happened. Discord tells it along.
func (a *Adapter) interactionPlace(i *interaction) place {
	if p, ok := a.rooms.get(i.ChannelID); ok {
		return p
	}
	if i.Channel == nil {
		kind := discordgo.ChannelTypeGuildText
		if i.GuildID == "" {
			kind = discordgo.ChannelTypeDM
		}
		return place{channel: i.ChannelID, parent: i.ChannelID, guild: i.GuildID, kind: kind}
	}
	c := *i.Channel
	c.ID, c.GuildID = i.ChannelID, i.GuildID
	return placeOf(c)
}

// interactionEvent makes the event of a command or a press.
func (a *Adapter) interactionEvent(i *interaction, p place) (platforms.Event, bool) {
	e := a.envelope(platforms.EventID("i"+i.ID), p)
	e.Addressed, e.At = true, when(i.ID)
	user, m := i.User, i.Member
	if m != nil && m.User != nil {
		user = m.User
	}
	e.Sender = userOf(user, m)
	if i.Locale != "" {
		e.Sender.Language = i.Locale
	}
	reply := i.ID + ":" + i.Token
	if i.Type == discordgo.InteractionApplicationCommand {
		e.Command = &platforms.Command{Name: i.Data.Name, Args: argsOf(i.Data.Options), Reply: reply}
		return e, i.Data.Name != ""
	}
	data := i.Data.CustomID
	if strings.HasPrefix(data, selectPrefix) && len(i.Data.Values) > 0 {
		data = i.Data.Values[0]
	}
	if i.Message == nil || data == "" {
		return e, false
	}
	if at, ours := a.own.Get(i.Message.ID); ours && at != e.Address && string(at.Chat) == string(e.Address.Chat) {
		e = a.moved(e, at)
	}
	e.Click = &platforms.Click{MessageID: platforms.MessageID(i.Message.ID), Data: data, Reply: reply}
	return e, true
}

// argsOf returns a command's options as a person would type them.
func argsOf(options []option) string {
	var parts []string
	for _, o := range options {
		if len(o.Options) > 0 {
			parts = append(parts, o.Name, argsOf(o.Options))
			continue
		}
		parts = append(parts, o.text())
	}
	return strings.TrimSpace(strings.Join(parts, " "))
}

// confirm tells Discord that an interaction was taken: a command gets a placeholder, a press nothing visible.
func (a *Adapter) confirm(ctx context.Context, w *pending) {
	defer close(w.acked)
	body := map[string]any{"type": discordgo.InteractionResponseDeferredMessageUpdate}
	if w.command {
		body["type"] = discordgo.InteractionResponseDeferredChannelMessageWithSource
		body["data"] = map[string]any{"flags": privateFlag}
	}
	ctx, cancel := context.WithTimeout(ctx, ackTime)
	defer cancel()
	err := a.callback(ctx, w.id, w.token, body)
	if isKind(err, platforms.Transient) && ctx.Err() == nil {
		err = a.callback(ctx, w.id, w.token, body)
	}
	if err != nil && codeOf(err) != codeInteractionAnswered {
		w.err = err
		a.s.Log.Warn().Err(err).Dur("age", time.Since(when(w.id))).Msg("an interaction could not be confirmed; the person sees that it failed")
	}
}

func (a *Adapter) callback(ctx context.Context, id, token string, body any) error {
	return a.do(ctx, call{
		method: http.MethodPost, route: "/interactions/{id}/{token}/callback", major: token,
		path: "/interactions/" + id + "/" + token + "/callback", body: body, open: true,
	}, nil)
}

// parseReply splits the token of an event.
func parseReply(reply string) (id, token string, err error) {
	id, token, ok := strings.Cut(reply, ":")
	if !ok || snowflake(id) == 0 || token == "" || strings.ContainsAny(token, "/?# ") {
		return "", "", platforms.Failure(platforms.BadRequest, "the reply token is none of Discord's")
	}
	return id, token, nil
}

// AnswerClick shows text to the presser alone. A press that Discord has forgotten is success.
func (a *Adapter) AnswerClick(ctx context.Context, at platforms.Address, click platforms.Click, text string) error {
	if err := a.checkAddress(at); err != nil {
		return err
	}
	_, token, err := parseReply(click.Reply)
	if err != nil {
		return err
	}
	if err := a.interactions.await(ctx, a.interactions.find(token)); err != nil {
		if isKind(err, platforms.Unsupported) {
			return nil
		}
		return err
	}
	if text == "" {
		return nil
	}
	app, err := a.app(ctx)
	if err != nil {
		return err
	}
	text = cut(text, textLimit)
	err = a.do(ctx, followup(app, token, payload{Content: &text, Flags: privateFlag, AllowedMentions: a.mentions()}), nil)
	if isKind(err, platforms.Unsupported) {
		return nil
	}
	return err
}

func followup(app, token string, p payload) call {
	return call{method: http.MethodPost, route: "/webhooks/{app}/{token}", major: token, path: "/webhooks/" + app + "/" + token + "?wait=true", body: p, open: true}
}

// sendPrivate answers a command or a press so that only its person sees it. In a direct chat, where nobody else is, a
// message takes the place of an answer that comes too late; elsewhere that is Unsupported.
func (o *outbound) sendPrivate(ctx context.Context) error {
	a := o.a
	id, token, err := parseReply(o.out.Private)
	if err != nil {
		return err
	}
	w := a.interactions.find(token)
	room, known := a.rooms.get(string(o.out.Address.Chat))
	dm := w != nil && w.dm || known && room.dm()
	if time.Since(when(id)) > tokenLife {
		return o.tooLate(ctx, dm, errors.New("the command was given more than 15 minutes ago: Discord takes no private answer to it any more"))
	}
	if err := a.interactions.await(ctx, w); err != nil {
		if isKind(err, platforms.Unsupported) {
			return o.tooLate(ctx, dm, errors.New("no private answer is possible: the command was not confirmed within 3 seconds"))
		}
		return err
	}
	app, err := a.app(ctx)
	if err != nil {
		return err
	}
	if o.out.Edit != "" {
		err = o.editPrivate(ctx, app, token)
	} else {
		err = o.answer(ctx, app, token, w)
	}
	if isKind(err, platforms.Unsupported) && !o.Some {
		return o.tooLate(ctx, dm, errors.New("no private answer to this command is possible any more"))
	}
	return err
}

func (o *outbound) tooLate(ctx context.Context, dm bool, why error) error {
	if !dm {
		return &platforms.SendError{Kind: platforms.Unsupported, Err: why}
	}
	o.out.Private = ""
	return o.send(ctx)
}

// answer fills the placeholder of a command, or sends a further message.
func (o *outbound) answer(ctx context.Context, app, token string, w *pending) error {
	send := func(ctx context.Context, text string, files []wire.File) error {
		p := o.message(text)
		p.Nonce, p.EnforceNonce, p.Reference = "", false, nil // webhooks know neither
		p.Flags |= privateFlag
		c := followup(app, token, p)
		original := o.a.interactions.use(w)
		if original {
			c.method, c.route = http.MethodPatch, "/webhooks/{app}/{token}/messages/{message}"
			c.path = "/webhooks/" + app + "/" + token + "/messages/@original"
			p.Flags = 0 // the placeholder has them
		}
		var m message
		err := o.webhook(ctx, c, p, files, &m)
		if original && unknown(err) && ctx.Err() == nil {
			err = o.webhook(ctx, c, p, files, &m) // filling it twice does no harm
		}
		if original && codeOf(err) == discordgo.ErrCodeUnknownMessage {
			p.Flags = o.message(text).Flags | privateFlag
			err = o.webhook(ctx, followup(app, token, p), p, files, &m)
		}
		if err != nil {
			return err
		}
		o.delivered(m.ID)
		return nil
	}
	if len(o.out.Attachments) == 0 {
		return send(ctx, o.text, nil)
	}
	return o.withFiles(ctx, string(o.out.Address.Chat), send)
}

func (o *outbound) webhook(ctx context.Context, c call, p payload, files []wire.File, m *message) error {
	c.body = p
	if len(files) > 0 {
		files = withNames(&p, files)
		form, err := newForm(p, files)
		if err != nil {
			return notSent(err)
		}
		defer form.close()
		c.form = form
	}
	return o.a.do(ctx, c, m)
}

func (o *outbound) editPrivate(ctx context.Context, app, token string) error {
	o.Receipt.Message = o.out.Edit
	rows := o.rows
	if rows == nil {
		rows = []discordgo.MessageComponent{}
	}
	return o.a.do(ctx, call{
		method: http.MethodPatch, route: "/webhooks/{app}/{token}/messages/{message}", major: token,
		path: "/webhooks/" + app + "/" + token + "/messages/" + string(o.out.Edit), open: true,
		body: payload{Content: &o.text, Components: &rows, AllowedMentions: o.a.mentions()},
	}, nil)
}
