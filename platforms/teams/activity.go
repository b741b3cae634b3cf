package teams

import (
	"encoding/json"
	"errors"
	"strings"
	"time"

	"herald/platforms"
)

// activity is what the Bot Framework posts, as far as we read it. Parts whose form depends on who made them are read
// one by one, so that a strange one spoils nothing else.
type activity struct {
	Type         string            `json:"type"`
	ID           string            `json:"id"`
	Timestamp    string            `json:"timestamp"`
	ServiceURL   string            `json:"serviceUrl"`
	ChannelID    string            `json:"channelId"`
	From         party             `json:"from"`
	Recipient    party             `json:"recipient"`
	Conversation conversation      `json:"conversation"`
	Text         string            `json:"text"`
	TextFormat   string            `json:"textFormat"`
	Locale       string            `json:"locale"`
	ReplyToID    string            `json:"replyToId"`
	Name         string            `json:"name"`
	Action       string            `json:"action"`
	Attachments  []inAttachment    `json:"attachments"`
	Entities     []json.RawMessage `json:"entities"`
	Value        json.RawMessage   `json:"value"`
	ChannelData  json.RawMessage   `json:"channelData"`
	Added        []reaction        `json:"reactionsAdded"`
	Removed      []reaction        `json:"reactionsRemoved"`
	MembersAdded []party           `json:"membersAdded"`
	MembersGone  []party           `json:"membersRemoved"`
}

// party is a person or a bot.
type party struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	AAD  string `json:"aadObjectId"`
	Role string `json:"role"`
}

// The kinds of conversation.
const (
	personal  = "personal"
	groupChat = "groupChat"
	channel   = "channel"
)

type conversation struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	Type     string `json:"conversationType"`
	TenantID string `json:"tenantId"`
	IsGroup  bool   `json:"isGroup"`
}

type reaction struct {
	Type string `json:"type"`
}

type inAttachment struct {
	ContentType string          `json:"contentType"`
	ContentURL  string          `json:"contentUrl"`
	Name        string          `json:"name"`
	Content     json.RawMessage `json:"content"`
}

// channelData is what only Teams says.
type channelData struct {
	EventType string `json:"eventType"`
	Tenant    struct {
		ID string `json:"id"`
	} `json:"tenant"`
	Team struct {
		ID    string `json:"id"`
		Name  string `json:"name"`
		Group string `json:"aadGroupId"`
	} `json:"team"`
	Channel struct {
		ID   string `json:"id"`
		Name string `json:"name"`
	} `json:"channel"`
}

// mention is an entity of type "mention".
type mention struct {
	Type      string `json:"type"`
	Text      string `json:"text"`
	Mentioned party  `json:"mentioned"`
}

// Bounds of one activity; more is cut off.
const (
	maxMentions    = 100
	maxAttachments = 30
	maxReactions   = 20
)

// decode reads an activity. An error means that the body is not an activity.
func decode(body []byte) (activity, error) {
	var a activity
	if err := json.Unmarshal(body, &a); err != nil {
		return activity{}, errors.New("the body is no activity")
	}
	if a.Type == "" || a.Conversation.ID == "" {
		return activity{}, errors.New("the activity has no type or no conversation")
	}
	a.Attachments = a.Attachments[:min(len(a.Attachments), maxAttachments)]
	a.Added = a.Added[:min(len(a.Added), maxReactions)]
	a.Removed = a.Removed[:min(len(a.Removed), maxReactions)]
	return a, nil
}

// data returns the Teams part; the zero value without one.
func (a *activity) data() channelData {
	var d channelData
	_ = json.Unmarshal(a.ChannelData, &d)
	return d
}

// mentions returns the mention entities.
func (a *activity) mentions() []mention {
	var out []mention
	for _, raw := range a.Entities {
		var m mention
		if json.Unmarshal(raw, &m) == nil && strings.EqualFold(m.Type, "mention") && len(out) < maxMentions {
			out = append(out, m)
		}
	}
	return out
}

// at returns when it happened, zero when Teams does not say.
func (a *activity) at() time.Time {
	t, err := time.Parse(time.RFC3339Nano, a.Timestamp)
	if err != nil {
		return time.Time{}
	}
	return platforms.Instant(t)
}

// place splits the conversation's id into the chat and the root message of a channel's thread.
func (a *activity) place() (chat, thread string) {
	chat, rest, _ := strings.Cut(a.Conversation.ID, ";")
	for part := range strings.SplitSeq(rest, ";") {
		if root, ok := strings.CutPrefix(part, "messageid="); ok {
			thread = root
		}
	}
	return chat, thread
}

// kind returns the type of conversation. Old activities say it of groups only by a flag.
func (a *activity) kind() string {
	switch {
	case a.Conversation.Type != "":
		return a.Conversation.Type
	case a.data().Channel.ID != "":
		return channel
	case a.Conversation.IsGroup:
		return groupChat
	}
	return personal
}

// outActivity is what we post.
type outActivity struct {
	Type        string          `json:"type"`
	ID          string          `json:"id,omitempty"`
	Text        string          `json:"text,omitempty"`
	TextFormat  string          `json:"textFormat,omitempty"`
	Summary     string          `json:"summary,omitempty"`
	From        *outParty       `json:"from,omitempty"`
	ReplyToID   string          `json:"replyToId,omitempty"`
	Attachments []outAttachment `json:"attachments,omitempty"`
	Entities    []any           `json:"entities,omitempty"`

	rows [][]platforms.Button // buttons that are no attachment yet, see single and endStream
}

type outParty struct {
	ID string `json:"id"`
}

type outAttachment struct {
	ContentType string `json:"contentType"`
	ContentURL  string `json:"contentUrl,omitempty"`
	Name        string `json:"name,omitempty"`
	Content     any    `json:"content,omitempty"`
}

// streamInfo is the entity that makes an activity part of a stream.
type streamInfo struct {
	Type     string `json:"type"` // "streaminfo"
	ID       string `json:"streamId,omitempty"`
	Kind     string `json:"streamType"`               // "streaming", "final"
	Sequence int    `json:"streamSequence,omitempty"` // from 1; none in the last
}
