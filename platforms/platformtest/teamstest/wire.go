package teamstest

import (
	"encoding/json"
	"fmt"
)

// account is a channel account.
type account struct {
	ID   string `json:"id"`
	Name string `json:"name,omitempty"`
	AAD  string `json:"aadObjectId,omitempty"`
	Role string `json:"role,omitempty"`
}

// conversation is a conversation account.
type conversation struct {
	ID       string `json:"id"`
	IsGroup  bool   `json:"isGroup,omitempty"`
	Type     string `json:"conversationType,omitempty"`
	TenantID string `json:"tenantId,omitempty"`
	Name     string `json:"name,omitempty"`
}

// attachment is an attachment of an activity.
type attachment struct {
	ContentType string          `json:"contentType"`
	ContentURL  string          `json:"contentUrl,omitempty"`
	Content     json.RawMessage `json:"content,omitempty"`
	Name        string          `json:"name,omitempty"`
}

// reaction is one of messageReaction's.
type reaction struct {
	Type string `json:"type"`
}

// activity is what the fake posts to the bot.
type activity struct {
	Type             string            `json:"type"`
	ID               string            `json:"id"`
	Timestamp        string            `json:"timestamp"`
	LocalTimestamp   string            `json:"localTimestamp,omitempty"`
	LocalTimezone    string            `json:"localTimezone,omitempty"`
	ServiceURL       string            `json:"serviceUrl"`
	ChannelID        string            `json:"channelId"`
	From             account           `json:"from"`
	Conversation     conversation      `json:"conversation"`
	Recipient        account           `json:"recipient"`
	Name             string            `json:"name,omitempty"`
	Action           string            `json:"action,omitempty"`
	TextFormat       string            `json:"textFormat,omitempty"`
	Text             *string           `json:"text,omitempty"`
	Locale           string            `json:"locale,omitempty"`
	ReplyToID        string            `json:"replyToId,omitempty"`
	Attachments      []attachment      `json:"attachments,omitempty"`
	Entities         []json.RawMessage `json:"entities,omitempty"`
	MembersAdded     []account         `json:"membersAdded,omitempty"`
	MembersRemoved   []account         `json:"membersRemoved,omitempty"`
	ReactionsAdded   []reaction        `json:"reactionsAdded,omitempty"`
	ReactionsRemoved []reaction        `json:"reactionsRemoved,omitempty"`
	Value            json.RawMessage   `json:"value,omitempty"`
	ChannelData      json.RawMessage   `json:"channelData,omitempty"`
}

// sent is an activity as the bot sends it, as far as Teams reads it.
type sent struct {
	Type             string          `json:"type"`
	Text             string          `json:"text"`
	TextFormat       string          `json:"textFormat"`
	Summary          string          `json:"summary"`
	ReplyToID        string          `json:"replyToId"`
	Attachments      []attachment    `json:"attachments"`
	AttachmentLayout string          `json:"attachmentLayout"`
	Entities         []sentEntity    `json:"entities"`
	ChannelData      sentChannelData `json:"channelData"`
	raw              json.RawMessage
}

type sentEntity struct {
	Type      string  `json:"type"`
	Text      string  `json:"text"`
	Mentioned account `json:"mentioned"`
	streamInfo
}

// streamInfo marks an activity as part of a stream. It is in an entity "streaminfo" or in channelData.
type streamInfo struct {
	StreamType     string `json:"streamType"`
	StreamID       string `json:"streamId"`
	StreamSequence int    `json:"streamSequence"`
}

type sentChannelData struct {
	streamInfo
	Notification struct {
		Alert bool `json:"alert"`
	} `json:"notification"`
}

// mustJSON encodes values of our own types.
func mustJSON(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("%T has no JSON: %v", v, err))
	}
	return raw
}
