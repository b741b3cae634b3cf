package discordtest

import (
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// threadRoutes are those about threads and forum posts.
func (d *Discord) threadRoutes() map[string]handler {
	return map[string]handler{
		"POST /channels/{channel}/messages/{message}/threads": d.threadFromMessage,
		"POST /channels/{channel}/threads":                    d.threadAlone,
		"DELETE /channels/{channel}/thread-members/@me":       d.leaveThread,
		"GET /channels/{channel}/threads/archived/public":     d.archivedThreads,
	}
}

// checkName checks the name of a channel or thread: 1 to 100 characters.
func checkName(name string) error {
	f := &form{}
	if n := utf8.RuneCountInString(strings.TrimSpace(name)); n == 0 || n > 100 {
		f.add("name", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 100 in length.")
	}
	return f.err()
}

func checkMinutes(n int) error {
	f := &form{}
	if !slices.Contains([]int{60, 1440, 4320, 10080}, n) {
		f.add("auto_archive_duration", "BASE_TYPE_CHOICES", "Value must be one of {60, 1440, 4320, 10080}.")
	}
	return f.err()
}

type threadBody struct {
	Name    string       `json:"name"`
	Minutes *int         `json:"auto_archive_duration"`
	Type    *ChannelType `json:"type"`
	Slow    int          `json:"rate_limit_per_user"`
	Message *draft       `json:"message"`
	Tags    []ID         `json:"applied_tags"`
}

func readThread(c *call) (*threadBody, error) {
	var body threadBody
	if err := c.decode(&body); err != nil {
		return nil, err
	}
	if err := checkName(body.Name); err != nil {
		return nil, err
	}
	if body.Minutes != nil {
		return &body, checkMinutes(*body.Minutes)
	}
	return &body, nil
}

// openThread makes a thread and tells. The id of one from a message is the message's.
func (d *Discord) openThread(parent *channel, id ID, kind ChannelType, name string, owner *user, body *threadBody) *channel {
	t := d.keepChannel(Channel{ID: id, Guild: parent.Guild, Parent: parent.ID, Type: kind, Name: strings.TrimSpace(name), Owner: owner.ID,
		Members: []ID{owner.ID}})
	t.archivedAt = time.Now()
	if body != nil {
		t.slow = body.Slow
		if body.Minutes != nil {
			t.autoClose = *body.Minutes
		}
	}
	d.act("thread", parent.ID, t.ID, owner.ID, t.Name)
	return t
}

// tellThread dispatches THREAD_CREATE.
func (d *Discord) tellThread(t *channel) {
	if t.guild.out || !d.sees(d.bot.ID, t) {
		return
	}
	w := d.wireChannel(t, true)
	w.New = true
	d.dispatch(event{name: "THREAD_CREATE", intent: IntentGuilds, data: w})
}

// threadOf starts a thread from a message.
func (d *Discord) threadOf(m *message, name string, owner *user, body *threadBody) *channel {
	parent, kind := m.channel, PublicThread
	if parent.Type == AnnouncementChannel {
		kind = AnnouncementThread
	}
	t := d.openThread(parent, m.id, kind, name, owner, body)
	t.started = true
	m.flags |= flagHasThread
	d.tellThread(t)
	starter := &message{id: d.newID(), channel: t, author: owner, typ: 21, ref: &wireReference{Message: m.id, Channel: parent.ID,
		Guild: parent.Guild}}
	d.keepMessage(starter)
	d.tell("MESSAGE_CREATE", starter, d.bot)
	d.tell("MESSAGE_UPDATE", m, d.bot)
	return t
}

// threadWithout starts a thread without a message, which the channel hears about unless it is private.
func (d *Discord) threadWithout(parent *channel, kind ChannelType, name string, owner *user, body *threadBody) *channel {
	t := d.openThread(parent, "", kind, name, owner, body)
	d.tellThread(t)
	if kind != PrivateThread {
		note := &message{id: d.newID(), channel: parent, author: owner, typ: 18, content: t.Name,
			ref: &wireReference{Channel: t.ID, Guild: t.Guild}}
		d.keepMessage(note)
		d.tell("MESSAGE_CREATE", note, d.bot)
	}
	return t
}

func (d *Discord) threadFromMessage(c *call) (int, any, error) {
	body, err := readThread(c)
	if err != nil {
		return 0, nil, err
	}
	ch, m, err := d.messageOf(c, CreatePublicThreads)
	switch {
	case err != nil:
		return 0, nil, err
	case ch.Type != TextChannel && ch.Type != AnnouncementChannel:
		return 0, nil, errChannelType
	case d.channels[m.id] != nil:
		return 0, nil, errHasThread
	case !m.ordinary():
		return 0, nil, refuse(403, 50021, "Cannot execute action on a system message")
	}
	t := d.threadOf(m, body.Name, d.bot, body)
	return http.StatusCreated, d.wireChannel(t, true), nil
}

func (d *Discord) threadAlone(c *call) (int, any, error) {
	body, err := readThread(c)
	if err != nil {
		return 0, nil, err
	}
	ch, err := d.reach(c.id("channel"), 0)
	if err != nil {
		return 0, nil, err
	}
	if ch.Type == ForumChannel {
		return d.forumPost(c, ch, body)
	}
	kind := PrivateThread // the default, says the documentation
	if body.Type != nil {
		kind = *body.Type
	}
	need := CreatePublicThreads
	if kind == PrivateThread {
		need = CreatePrivateThreads
	}
	switch {
	case ch.Type != TextChannel && ch.Type != AnnouncementChannel || kind != PublicThread && kind != PrivateThread &&
		kind != AnnouncementThread:
		return 0, nil, errChannelType
	case d.permissions(d.bot.ID, ch)&need == 0:
		return 0, nil, errPermissions
	}
	return http.StatusCreated, d.wireChannel(d.threadWithout(ch, kind, body.Name, d.bot, body), true), nil
}

// forumPost opens a post with its first message, whose id is the thread's.
func (d *Discord) forumPost(c *call, forum *channel, body *threadBody) (int, any, error) {
	if body.Message == nil {
		f := &form{}
		f.add("message", "BASE_TYPE_REQUIRED", "This field is required")
		return 0, nil, f.err()
	}
	body.Message.files = c.files
	p := d.permissions(d.bot.ID, forum)
	if p&SendMessages == 0 || len(c.files) > 0 && p&AttachFiles == 0 {
		return 0, nil, errPermissions
	}
	// The message is checked before the thread stands.
	trial := &message{id: d.newID(), channel: &channel{Channel: Channel{ID: forum.ID, Guild: forum.Guild}, guild: forum.guild}, author: d.bot}
	if err := d.apply(trial, body.Message); err != nil {
		return 0, nil, err
	}
	d.dropFiles(trial)
	t := d.openThread(forum, "", PublicThread, body.Name, d.bot, body)
	m := &message{id: t.ID, channel: t, author: d.bot, nonce: body.Message.Nonce}
	if err := d.apply(m, body.Message); err != nil {
		return 0, nil, err
	}
	d.keepMessage(m)
	forum.last = t.ID
	d.act("send", t.ID, m.id, d.bot.ID, m.content)
	d.tellThread(t)
	d.tell("MESSAGE_CREATE", m, d.bot)
	w := d.wireChannel(t, true)
	w.Message = d.wireMessage(m, view{nonce: true})
	return http.StatusCreated, w, nil
}

// join puts somebody into a thread.
func (d *Discord) join(t *channel, who *user) {
	if slices.Contains(t.Members, who.ID) {
		return
	}
	unseen := who == d.bot && !d.sees(d.bot.ID, t)
	t.Members = append(t.Members, who.ID)
	if unseen {
		d.dispatch(event{name: "THREAD_CREATE", intent: IntentGuilds, data: d.wireChannel(t, true)})
	}
	d.tellMembers(t, who, true)
}

func (d *Discord) leave(t *channel, who *user) {
	if !slices.Contains(t.Members, who.ID) {
		return
	}
	t.Members = slices.DeleteFunc(t.Members, func(id ID) bool { return id == who.ID })
	d.tellMembers(t, who, false)
}

func (d *Discord) tellMembers(t *channel, who *user, added bool) {
	intent := IntentMembers
	if who == d.bot {
		intent = IntentGuilds
	} else if !d.sees(d.bot.ID, t) {
		return
	}
	data := map[string]any{"id": t.ID, "guild_id": t.Guild, "member_count": len(t.Members)}
	if added {
		w := wireThreadMember{ID: t.ID, User: who.ID, Joined: stamp(time.Now())}
		if m := t.guild.member(who.ID); m != nil {
			member := d.wireMember(m)
			w.Member = &member
		}
		data["added_members"] = []wireThreadMember{w}
	} else {
		data["removed_member_ids"] = []ID{who.ID}
	}
	d.dispatch(event{name: "THREAD_MEMBERS_UPDATE", intent: intent, data: data})
}

// threadFor finds a thread, and the user that a route names.
func (d *Discord) threadFor(c *call) (*channel, *user, error) {
	t, err := d.reach(c.id("channel"), 0)
	if err != nil {
		return nil, nil, err
	}
	if !t.isThread() {
		return nil, nil, errChannelType
	}
	who := d.bot
	if id := c.r.PathValue("user"); id != "" && id != "@me" {
		who = d.users[ID(id)]
	}
	if who == nil {
		return nil, nil, errUnknownUser
	}
	return t, who, nil
}

func (d *Discord) leaveThread(c *call) (int, any, error) {
	t, who, err := d.threadFor(c)
	if err != nil {
		return 0, nil, err
	}
	if who != d.bot && d.permissions(d.bot.ID, t)&ManageThreads == 0 {
		return 0, nil, errPermissions
	}
	d.leave(t, who)
	return http.StatusNoContent, nil, nil
}

type wireThreads struct {
	Threads []*wireChannel     `json:"threads"`
	Members []wireThreadMember `json:"members"`
	More    *bool              `json:"has_more,omitempty"`
}

func membersOf(threads []*wireChannel) []wireThreadMember {
	out := []wireThreadMember{}
	for _, t := range threads {
		if t.Member != nil {
			out = append(out, *t.Member)
		}
	}
	return out
}

func (d *Discord) getActiveThreads(c *call) (int, any, error) {
	g, err := d.mine(c)
	if err != nil {
		return 0, nil, err
	}
	list := d.activeThreads(g)
	return 200, wireThreads{Threads: list, Members: membersOf(list)}, nil
}

func (d *Discord) archivedThreads(c *call) (int, any, error) {
	ch, err := d.reach(c.id("channel"), ReadMessageHistory)
	if err != nil {
		return 0, nil, err
	}
	private := strings.HasSuffix(c.route, "private")
	list, more := []*wireChannel{}, false
	for _, t := range d.channels {
		if t.isThread() && t.Parent == ch.ID && t.Archived && (t.Type == PrivateThread) == private && d.sees(d.bot.ID, t) {
			list = append(list, d.wireChannel(t, true))
		}
	}
	slices.SortFunc(list, func(a, b *wireChannel) int { return strings.Compare(b.Thread.At, a.Thread.At) })
	if most := queryInt(c, "limit", 50); len(list) > most {
		list, more = list[:most], true
	}
	return 200, wireThreads{list, membersOf(list), &more}, nil
}
