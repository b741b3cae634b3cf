package teams

import (
	"encoding/json"
	"strings"

	"herald/platforms"
)

const (
	cardType    = "application/vnd.microsoft.card.adaptive"
	cardSchema  = "http://adaptivecards.io/schemas/adaptive-card.json"
	cardVersion = "1.4" // the first that knows Action.Execute

	// maxButtonData is the most bytes of Button.Data, see platforms.Button.
	maxButtonData = 64
	// maxActions is how many buttons Teams shows of one row.
	maxActions = 6
)

// card is an Adaptive Card of rows of buttons. The text stands beside it in the message, where Teams shows all of its
// Markdown.
type card struct {
	Type    string      `json:"type"`
	Schema  string      `json:"$schema"`
	Version string      `json:"version"`
	Body    []actionSet `json:"body"`
}

type actionSet struct {
	Type    string   `json:"type"`
	Actions []action `json:"actions"`
}

type action struct {
	Type  string     `json:"type"`
	Title string     `json:"title"`
	Verb  string     `json:"verb"`
	Data  actionData `json:"data"`
	Style string     `json:"style,omitempty"`
}

type actionData struct {
	Herald string `json:"herald"`
}

// cardOf returns the rows as an attachment, nil when there are none.
func cardOf(rows [][]platforms.Button) *outAttachment {
	c := card{Type: "AdaptiveCard", Schema: cardSchema, Version: cardVersion}
	for _, row := range rows {
		for len(row) > 0 {
			n := min(len(row), maxActions)
			set := actionSet{Type: "ActionSet"}
			for _, b := range row[:n] {
				set.Actions = append(set.Actions, action{Type: "Action.Execute", Title: b.Label, Verb: verb, Data: actionData{b.Data}, Style: styleOf(b.Style)})
			}
			c.Body = append(c.Body, set)
			row = row[n:]
		}
	}
	if len(c.Body) == 0 {
		return nil
	}
	return &outAttachment{ContentType: cardType, Content: c}
}

// sizeOf returns what a card takes of a message's limit.
func sizeOf(a *outAttachment) int {
	if a == nil {
		return 0
	}
	raw, _ := json.Marshal(a)
	return len(raw)
}

func styleOf(style string) string {
	switch style {
	case "primary":
		return "positive"
	case "danger":
		return "destructive"
	}
	return ""
}

func checkButtons(rows [][]platforms.Button) error {
	for _, row := range rows {
		for _, b := range row {
			switch {
			case strings.TrimSpace(b.Label) == "":
				return badRequest("a button has no label")
			case b.Data == "" || len(b.Data) > maxButtonData:
				return badRequest("button %q has %d bytes of data: want 1 to %d", b.Label, len(b.Data), maxButtonData)
			}
		}
	}
	return nil
}
