package teams

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"herald/platforms"
	"herald/platforms/wire"
)

// Send delivers one message or one edit. Errors are *platforms.SendError.
//
// An interim edit that is over the rate limit is skipped with RateLimited; everything else waits its turn within ctx. When a
// message needs several requests and a later one fails, the receipt's notes say what is missing, because the first part is
// visible already.
func (a *Adapter) Send(ctx context.Context, out platforms.Outgoing) (platforms.Receipt, error) {
	t, err := a.target(ctx, out.Address)
	if err != nil {
		return platforms.Receipt{}, err
	}
	if err := checkOutgoing(out); err != nil {
		return platforms.Receipt{}, err
	}
	o := outbound{a: a, out: out, target: t, Parts: wire.Parts{Platform: "Teams", Log: &a.s.Log, Chat: t.chat}}
	switch {
	case out.Private != "" && t.Type != personal: // a personal chat is private by itself
		err = a.whisper(ctx, out)
	case out.Edit != "":
		err = o.edit(ctx)
	case o.streamable():
		err = o.beginStream(ctx)
	default:
		err = o.fresh(ctx)
	}
	if err != nil {
		return platforms.Receipt{}, err
	}
	if out.Private == "" && out.Edit == "" {
		o.takeRoot(ctx)
	}
	return o.Receipt, nil
}

// takeRoot notes the thread that a post in a channel begins: replies to it land there.
func (o *outbound) takeRoot(ctx context.Context) {
	id := string(o.Receipt.Message)
	if o.out.Thread == "" || o.thread != "" || o.Type != channel || id == "" {
		return
	}
	o.Receipt.Thread = platforms.ThreadID(id)
	if !o.a.s.Graph {
		return
	}
	if err := o.a.threads.Add(ctx, ownName(o.chat, id)); err != nil {
		o.a.s.Log.Warn().Err(err).Msg("a thread that we take part in can't be noted")
	}
}

func checkOutgoing(out platforms.Outgoing) error {
	for _, id := range []platforms.MessageID{out.Edit, out.ReplyTo} {
		if id != "" && !messagePattern.MatchString(string(id)) {
			return platforms.Failure(platforms.BadRequest, "message %q is no Teams message id", id)
		}
	}
	if err := wire.CheckButtons(out.Buttons); err != nil {
		return err
	}
	n, over := len(out.Text.AsBody()), 0
	if len(out.Buttons) > 0 {
		over = sizeOf(cardOf(out.Text.AsBody(), out.Buttons)) - (messageLimit - summaryLimit)
	}
	if over = max(over, n-textLimit); over > 0 {
		return platforms.Failure(platforms.TooLong, "the text has %d bytes, Teams takes %d fewer here", n, over)
	}
	return nil
}

// threadMark is between a channel and the root of a thread in a conversation's id.
const threadMark = ";messageid="

// target is a place with what is known of it.
type target struct {
	room
	chat, thread string
}

// target checks an address and looks up where it is served.
func (a *Adapter) target(ctx context.Context, at platforms.Address) (target, error) {
	t := target{chat: string(at.Chat), thread: string(at.Thread)}
	if chat, root, ok := strings.Cut(t.chat, threadMark); ok && t.thread == "" { // a home channel, as people copy it
		t.chat, t.thread = chat, root
	}
	switch {
	case at.AccountOf() != a.s.account:
		return t, platforms.Failure(platforms.BadRequest, "address %s is not of account %s", at, a.s.account)
	case !chatPattern.MatchString(t.chat):
		return t, platforms.Failure(platforms.BadRequest, "chat %q is no Teams conversation id", at.Chat)
	case t.thread != "" && !messagePattern.MatchString(t.thread):
		return t, platforms.Failure(platforms.BadRequest, "thread %q is no Teams message id", at.Thread)
	}
	known, ok, err := a.rooms.find(ctx, t.chat)
	if err != nil {
		return t, &platforms.SendError{Kind: platforms.Transient, Err: err}
	}
	t.room = known
	if !ok {
		t.Type = guessType(t.chat)
	}
	service, allowed := a.s.serves(t.ServiceURL) // the list may have changed since it was noted
	if !allowed {
		service = a.s.ServiceURL
	}
	t.ServiceURL = service
	return t, nil
}

// activities returns the address of the place's activities, or of one of them.
func (t target) activities(id string) string {
	conversation := t.chat
	if t.thread != "" {
		conversation += threadMark + t.thread
	}
	u := t.ServiceURL + "v3/conversations/" + url.PathEscape(conversation) + "/activities"
	if id != "" {
		u += "/" + url.PathEscape(id)
	}
	return u
}

// created is what the connector answers to a new activity.
type created struct {
	ID string `json:"id"`
}

// outbound is one Outgoing on its way.
type outbound struct {
	a   *Adapter
	out platforms.Outgoing
	target
	wire.Parts
}

// fresh sends a new message with its files.
func (o *outbound) fresh(ctx context.Context) error {
	files := o.usable()
	inline, rest := o.split(files)
	if o.out.Text.AsBody() == "" && len(o.out.Buttons) == 0 && len(files) == 0 {
		if len(o.Receipt.Notes) > 0 {
			return nil // there were files, and none can be sent: the notes say why
		}
		return platforms.Failure(platforms.BadRequest, "the message has neither text nor attachments")
	}
	if o.out.Text.AsBody() != "" || len(o.out.Buttons) > 0 || len(inline) > 0 {
		act := o.message(inline).single()
		if act.Text != "" || len(act.Attachments) > 0 {
			if err := o.create(ctx, act); err != nil {
				return err
			}
		}
		if err := o.sendPictures(ctx, inline); err != nil {
			return err
		}
	}
	return o.sendFiles(ctx, rest)
}

// message returns the text, the buttons and the pictures as an activity.
func (o *outbound) message(inline []file) outActivity {
	act := outActivity{Type: "message", Text: o.out.Text.AsBody(), TextFormat: "markdown"}
	for _, f := range inline {
		act.Attachments = append(act.Attachments, f.inline())
	}
	if len(o.out.Buttons) > 0 {
		act.rows = o.out.Buttons
		act.Summary = cut(o.out.Text.Plain, summaryLimit)
	}
	return act
}

// single returns what can be one message of Teams: a text, or a card with the text on it. Pictures are messages of their
// own.
func (act outActivity) single() outActivity {
	act.Attachments = nil
	if card := cardOf(act.Text, act.rows); card != nil {
		act.Text, act.TextFormat, act.Attachments = "", "", []outAttachment{*card}
	}
	return act
}

// sendPictures sends pictures, a message each: of several in one Teams gives no id.
func (o *outbound) sendPictures(ctx context.Context, inline []file) error {
	for _, f := range inline {
		err := o.create(ctx, outActivity{Type: "message", Attachments: []outAttachment{f.inline()}})
		if err := o.Failed(err, f.Attachment); err != nil {
			return err
		}
	}
	return nil
}

// create posts a message that people see, as a reply where one is asked for. A conversation that refuses replies or threads
// (group chats do) gets it without.
func (o *outbound) create(ctx context.Context, act outActivity) error {
	replyTo := ""
	if !o.Some && !o.Flat {
		replyTo = string(o.out.ReplyTo)
	}
	strayThread := o.thread != "" && o.Type != channel
	act.ReplyToID = replyTo
	id, c, err := o.post(ctx, replyTo, act, false)
	if err != nil && (replyTo != "" || strayThread) && refusedReply(c, err) {
		o.a.s.Log.Warn().Str("chat", o.chat).Int("status", c.Status).Msg("this conversation refuses a reply; the message goes out without one")
		if o.Type == groupChat && replyTo != "" && !strayThread && c.Status == http.StatusBadRequest {
			o.noteFlat(ctx)
		}
		if act.ReplyToID = ""; strayThread {
			o.thread = ""
		}
		id, c, err = o.post(ctx, "", act, false)
	}
	if err != nil {
		return err
	}
	if c.taken && o.out.Interim { // it is visible, and no edit would find it
		return &platforms.SendError{Kind: platforms.Transient, Certainty: platforms.Unknown, Err: errGarbled}
	}
	o.sent(ctx, id)
	return nil
}

// refusedReply reports whether the connector may have refused a message only for what it answers.
func refusedReply(c *call, err error) bool {
	if c == nil {
		return false
	}
	kind := platforms.AsSendError(err).Kind
	return (c.Status == http.StatusBadRequest || c.Status == http.StatusNotFound || c.Status == http.StatusMethodNotAllowed) &&
		kind != platforms.TooLong && kind != platforms.RateLimited
}

// noteFlat remembers that the conversation refuses replies.
func (o *outbound) noteFlat(ctx context.Context) {
	o.Flat = true
	if known, ok, err := o.a.rooms.find(ctx, o.chat); ok && err == nil {
		known.Flat = true
		if err := o.a.rooms.note(ctx, o.chat, known); err != nil {
			o.a.s.Log.Warn().Err(err).Msg("a conversation can't be noted")
		}
	}
}

// post makes one request that people see. A success whose answer can't be read is one without an id.
func (o *outbound) post(ctx context.Context, replyTo string, act outActivity, skip bool) (string, *call, error) {
	var got created
	c, err := o.do(ctx, request{method: http.MethodPost, url: o.activities(replyTo), body: act}, &got, skip)
	if err != nil && c != nil && c.taken {
		return "", c, nil
	}
	if err == nil && got.ID != "" && !messagePattern.MatchString(got.ID) {
		got.ID = ""
	}
	if e := platforms.AsSendError(err); e != nil && o.thread != "" && (e.Kind == platforms.NotFound || e.Kind == platforms.MessageGone) {
		e.Kind = platforms.ThreadGone // the channel may be there all the same
	}
	return got.ID, c, err
}

// do passes the gate, makes a request, and shuts the gate when Teams asks for that.
func (o *outbound) do(ctx context.Context, r request, into any, skip bool) (*call, error) {
	a := o.a
	if err := a.gate.Pass(ctx, skip, o.chat); err != nil {
		return nil, err
	}
	c, err := a.ask(ctx, r, into)
	if e := platforms.AsSendError(err); e != nil && e.Kind == platforms.RateLimited {
		a.gate.Close(e.RetryAfter, o.chat)
	}
	return c, err
}

// sent notes a message of ours.
func (o *outbound) sent(ctx context.Context, id string) {
	if id != "" {
		if err := o.a.own.Add(ctx, ownName(o.chat, id)); err != nil {
			o.a.s.Log.Warn().Err(err).Msg("a message of ours can't be noted")
		}
	}
	if o.thread != "" && o.a.s.Graph {
		if err := o.a.threads.Add(ctx, ownName(o.chat, o.thread)); err != nil {
			o.a.s.Log.Warn().Err(err).Msg("a thread that we take part in can't be noted")
		}
	}
	o.Sent(platforms.MessageID(id))
}

// edit replaces a message: its text, buttons and pictures. A stream that goes on takes it as its next state or its end.
func (o *outbound) edit(ctx context.Context) error {
	o.Receipt.Message, o.Some = o.out.Edit, true
	files := o.usable()
	inline, rest := o.split(files)
	act := o.message(inline)
	if act.Text == "" && len(act.Attachments) == 0 && len(act.rows) == 0 {
		return platforms.Failure(platforms.BadRequest, "the edit has no text")
	}
	if s := o.a.streams.find(o.chat, string(o.out.Edit)); s != nil {
		if done, err := o.continueStream(ctx, s, act); done {
			if err == nil && !o.out.Interim {
				err = o.sendFiles(ctx, rest)
			}
			return err
		}
	}
	whole := act.single()
	if whole.Text == "" && len(whole.Attachments) == 0 { // the first picture takes the message's place
		whole.Attachments, inline = act.Attachments[:1], inline[1:]
	}
	if err := o.update(ctx, whole, act); err != nil {
		return err
	}
	if err := o.sendPictures(ctx, inline); err != nil {
		return err
	}
	return o.sendFiles(ctx, rest)
}

// update puts an activity in the place of a message. asStream is the same as the end of a stream.
func (o *outbound) update(ctx context.Context, act, asStream outActivity) error {
	id := string(o.out.Edit)
	act.ID = id
	c, err := o.do(ctx, request{method: http.MethodPut, url: o.activities(id), body: act}, nil, o.out.Interim)
	if c != nil && c.taken {
		return nil
	}
	if err != nil && c != nil && strings.EqualFold(c.code, "ContentStreamNotAllowed") {
		return o.unfinished(ctx, asStream, err)
	}
	return o.gone(c, err)
}

// unfinished ends the stream of an earlier process, which can't be edited before. Where Teams does not take the text as
// its end, it becomes a message by itself within two minutes; until then the edit is to be tried again.
func (o *outbound) unfinished(ctx context.Context, act outActivity, err error) error {
	done, endErr := o.endStream(ctx, &stream{chat: o.chat, id: string(o.out.Edit), text: act.Text}, act)
	if done {
		return endErr
	}
	e := platforms.AsSendError(err)
	e.Kind = platforms.Transient
	return e
}

// gone says that a message to change is not there, where the connector says only that something is not found.
func (o *outbound) gone(c *call, err error) error {
	e := platforms.AsSendError(err)
	if e == nil {
		return nil
	}
	if c != nil && c.Status == http.StatusNotFound && !strings.EqualFold(c.code, "ConversationNotFound") {
		e.Kind = platforms.MessageGone
	}
	return e
}
