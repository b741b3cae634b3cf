package discord

import (
	"encoding/json"
	"strings"

	"github.com/bwmarrin/discordgo"
)

// The payloads as Discord writes them, as far as they are read here. discordgo's own Message, Interaction and
// Guild fail as a whole on a part that is newer than the library, and hold much that would only take memory.

// frame is one message of the gateway.
type frame struct {
	Op int             `json:"op"`
	D  json.RawMessage `json:"d"`
	S  int64           `json:"s"`
	T  string          `json:"t"`
}

// The gateway's opcodes.
const (
	opDispatch       = 0
	opHeartbeat      = 1
	opIdentify       = 2
	opResume         = 6
	opReconnect      = 7
	opInvalidSession = 9
	opHello          = 10
	opAck            = 11
)

type message struct {
	ID         string                         `json:"id"`
	ChannelID  string                         `json:"channel_id"`
	GuildID    string                         `json:"guild_id"`
	Content    string                         `json:"content"`
	Edited     string                         `json:"edited_timestamp"`
	Author     *discordgo.User                `json:"author"`
	Member     *member                        `json:"member"`
	Mentions   []*discordgo.User              `json:"mentions"`
	MentionsOf []string                       `json:"mention_roles"`
	Files      []*discordgo.MessageAttachment `json:"attachments"`
	Embeds     []embed                        `json:"embeds"`
	Type       discordgo.MessageType          `json:"type"`
	WebhookID  string                         `json:"webhook_id"`
	Flags      discordgo.MessageFlags         `json:"flags"`
	Reference  *struct {
		Type      int    `json:"type"`
		MessageID string `json:"message_id"`
		ChannelID string `json:"channel_id"`
	} `json:"message_reference"`
	Referenced *message `json:"referenced_message"`
	Snapshots  []struct {
		Message message `json:"message"`
	} `json:"message_snapshots"`
	Reactions []struct {
		Me    bool            `json:"me"`
		Emoji discordgo.Emoji `json:"emoji"`
	} `json:"reactions"`
	Stickers []struct {
		Name string `json:"name"`
	} `json:"sticker_items"`
	Poll *struct {
		Question struct {
			Text string `json:"text"`
		} `json:"question"`
		Answers []struct {
			Media struct {
				Text string `json:"text"`
			} `json:"poll_media"`
		} `json:"answers"`
	} `json:"poll"`
	Nonce json.RawMessage `json:"nonce"` // a string or a number
}

// nonce returns the message's nonce as text.
func (m *message) nonce() string { return strings.Trim(string(m.Nonce), `"`) }

type embed struct {
	Title       string `json:"title"`
	Description string `json:"description"`
	URL         string `json:"url"`
}

type member struct {
	User  *discordgo.User `json:"user"`
	Nick  string          `json:"nick"`
	Roles []string        `json:"roles"`
}

type channel struct {
	ID         string                `json:"id"`
	GuildID    string                `json:"guild_id"`
	Name       string                `json:"name"`
	Topic      string                `json:"topic"`
	Type       discordgo.ChannelType `json:"type"`
	ParentID   string                `json:"parent_id"`
	OwnerID    string                `json:"owner_id"`
	Recipients []*discordgo.User     `json:"recipients"`
	Tags       []struct {
		ID        string `json:"id"`
		Moderated bool   `json:"moderated"`
	} `json:"available_tags"`
	Message *message `json:"message"` // only in the answer to a new forum post
}

type guild struct {
	ID          string    `json:"id"`
	Name        string    `json:"name"`
	Tier        int       `json:"premium_tier"`
	Unavailable bool      `json:"unavailable"`
	Channels    []channel `json:"channels"`
	Threads     []channel `json:"threads"`
	Roles       []struct {
		ID   string `json:"id"`
		Tags *struct {
			BotID string `json:"bot_id"`
		} `json:"tags"`
	} `json:"roles"`
}

type ready struct {
	SessionID   string         `json:"session_id"`
	ResumeURL   string         `json:"resume_gateway_url"`
	User        discordgo.User `json:"user"`
	Guilds      []guild        `json:"guilds"`
	Application struct {
		ID string `json:"id"`
	} `json:"application"`
}

type reactionEvent struct {
	UserID    string          `json:"user_id"`
	ChannelID string          `json:"channel_id"`
	MessageID string          `json:"message_id"`
	GuildID   string          `json:"guild_id"`
	Member    *member         `json:"member"`
	Emoji     discordgo.Emoji `json:"emoji"`
	AuthorID  string          `json:"message_author_id"`
}

type interaction struct {
	ID            string                    `json:"id"`
	ApplicationID string                    `json:"application_id"`
	Type          discordgo.InteractionType `json:"type"`
	GuildID       string                    `json:"guild_id"`
	ChannelID     string                    `json:"channel_id"`
	Channel       *channel                  `json:"channel"`
	Member        *member                   `json:"member"`
	User          *discordgo.User           `json:"user"`
	Message       *message                  `json:"message"`
	Token         string                    `json:"token"`
	Locale        string                    `json:"locale"`
	Data          struct {
		Name     string   `json:"name"`
		Options  []option `json:"options"`
		CustomID string   `json:"custom_id"`
		Values   []string `json:"values"`
	} `json:"data"`
}

type option struct {
	Name    string          `json:"name"`
	Value   json.RawMessage `json:"value"`
	Focused bool            `json:"focused"`
	Options []option        `json:"options"`
}

// text returns the option's value as a person typed it.
func (o option) text() string {
	var s string
	if json.Unmarshal(o.Value, &s) == nil {
		return s
	}
	return string(o.Value)
}

// decode reads a payload.
func decode[T any](raw json.RawMessage) (*T, error) {
	var v T
	if err := json.Unmarshal(raw, &v); err != nil {
		return nil, err
	}
	return &v, nil
}
