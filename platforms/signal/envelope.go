package signal

import (
	"encoding/json"
	"errors"
	"strings"
)

// notice is one line of the stream: an envelope, and whose it is.
type notice struct {
	Account   string     `json:"account"`
	Envelope  *envelope  `json:"envelope"`
	Exception *exception `json:"exception"`
}

// exception is why the daemon could not read a message.
type exception struct {
	Type    string `json:"type"`
	Message string `json:"message"`
}

type envelope struct {
	Source       string          `json:"source"`
	SourceNumber string          `json:"sourceNumber"`
	SourceUUID   string          `json:"sourceUuid"`
	SourceName   string          `json:"sourceName"`
	Timestamp    int64           `json:"timestamp"`
	Data         *dataMessage    `json:"dataMessage"`
	Edit         *editMessage    `json:"editMessage"`
	Sync         *syncMessage    `json:"syncMessage"`
	Story        json.RawMessage `json:"storyMessage"`
	Receipt      json.RawMessage `json:"receiptMessage"`
	Typing       json.RawMessage `json:"typingMessage"`
	Call         json.RawMessage `json:"callMessage"`
}

type dataMessage struct {
	Timestamp   int64           `json:"timestamp"`
	Message     string          `json:"message"`
	Mentions    []mention       `json:"mentions"`
	Quote       *quote          `json:"quote"`
	Attachments []attachment    `json:"attachments"`
	Reaction    *reaction       `json:"reaction"`
	Sticker     *sticker        `json:"sticker"`
	Group       *groupInfo      `json:"groupInfo"`
	Contacts    []sharedContact `json:"contacts"`
	Poll        *poll           `json:"pollCreate"`
	Delete      json.RawMessage `json:"remoteDelete"`
}

type editMessage struct {
	Target int64        `json:"targetSentTimestamp"`
	Data   *dataMessage `json:"dataMessage"`
}

type syncMessage struct {
	Sent *sentMessage `json:"sentMessage"`
}

// sentMessage is what another device of the account has sent.
type sentMessage struct {
	dataMessage
	Destination       string       `json:"destination"`
	DestinationNumber string       `json:"destinationNumber"`
	DestinationUUID   string       `json:"destinationUuid"`
	Edit              *editMessage `json:"editMessage"`
}

type mention struct {
	Name   string `json:"name"`
	Number string `json:"number"`
	UUID   string `json:"uuid"`
	Start  int    `json:"start"`
	Length int    `json:"length"`
}

type quote struct {
	ID           int64     `json:"id"`
	Author       string    `json:"author"`
	AuthorNumber string    `json:"authorNumber"`
	AuthorUUID   string    `json:"authorUuid"`
	Text         string    `json:"text"`
	Mentions     []mention `json:"mentions"`
}

type attachment struct {
	ContentType string `json:"contentType"`
	Filename    string `json:"filename"`
	ID          string `json:"id"`
	Size        int64  `json:"size"`
	Caption     string `json:"caption"`
}

type reaction struct {
	Emoji        string `json:"emoji"`
	Author       string `json:"targetAuthor"`
	AuthorNumber string `json:"targetAuthorNumber"`
	AuthorUUID   string `json:"targetAuthorUuid"`
	Target       int64  `json:"targetSentTimestamp"`
	Remove       bool   `json:"isRemove"`
}

type sticker struct {
	Pack string `json:"packId"`
	ID   int    `json:"stickerId"`
}

type groupInfo struct {
	ID   string `json:"groupId"`
	Name string `json:"groupName"`
	Type string `json:"type"`
}

type sharedContact struct {
	Name struct {
		Display string `json:"display"`
		Given   string `json:"given"`
		Family  string `json:"family"`
	} `json:"name"`
	Phones []struct {
		Value string `json:"value"`
	} `json:"phone"`
}

type poll struct {
	Question string   `json:"question"`
	Options  []string `json:"options"`
}

var errNoEnvelope = errors.New("the data holds no envelope")

// decode reads the data of one event in each form that daemons and bridges write: {account, envelope}, the same below
// params, or below params.result with a subscription, or a bare envelope.
func decode(data []byte) (notice, error) {
	var n struct {
		notice
		Params *struct {
			notice
			Result *notice `json:"result"`
		} `json:"params"`
	}
	if err := json.Unmarshal(data, &n); err != nil {
		return notice{}, err
	}
	switch {
	case n.Envelope != nil || n.Exception != nil:
		return n.notice, nil
	case n.Params != nil && n.Params.Result != nil && n.Params.Result.Envelope != nil:
		return *n.Params.Result, nil
	case n.Params != nil && n.Params.Envelope != nil:
		return n.Params.notice, nil
	}
	var bare envelope
	if err := json.Unmarshal(data, &bare); err != nil {
		return notice{}, err
	}
	if bare.Timestamp == 0 || bare.Source == "" && bare.SourceNumber == "" && bare.SourceUUID == "" {
		return notice{}, errNoEnvelope
	}
	return notice{Account: n.Account, Envelope: &bare}, nil
}

// ids returns number and UUID of what an envelope names in three fields.
func ids(legacy, number, uuid string) (string, string) {
	if number == "" && strings.HasPrefix(legacy, "+") {
		number = legacy
	}
	if uuid == "" && isUUID(legacy) {
		uuid = legacy
	}
	return number, uuid
}

func isUUID(id string) bool {
	if len(id) != 36 {
		return false
	}
	for i, c := range id {
		switch i {
		case 8, 13, 18, 23:
			if c != '-' {
				return false
			}
		default:
			if (c < '0' || c > '9') && (c < 'a' || c > 'f') && (c < 'A' || c > 'F') {
				return false
			}
		}
	}
	return true
}
