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

	// maxActions is how many buttons Teams shows of one row.
	maxActions = 6
)

// card is an Adaptive Card of a text and rows of buttons. Teams makes two messages of a text with a card beside it, gives
// no id of them, and refuses both in one edit: so the text stands on the card.
type card struct {
	Type    string    `json:"type"`
	Schema  string    `json:"$schema"`
	Version string    `json:"version"`
	Body    []element `json:"body"`
}

// element is a TextBlock with Text, a RichTextBlock with Inlines, which shows its text as it is, or an ActionSet with
// Actions.
type element struct {
	Type    string    `json:"type"`
	Text    string    `json:"text,omitempty"`
	Wrap    bool      `json:"wrap,omitempty"`
	Inlines []textRun `json:"inlines,omitempty"`
	Actions []action  `json:"actions,omitempty"`
}

type textRun struct {
	Type string `json:"type"`
	Text string `json:"text"`
	Font string `json:"fontType,omitempty"`
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

// cardOf returns a text and rows as an attachment, nil when there are no rows.
func cardOf(text string, rows [][]platforms.Button) *outAttachment {
	c := card{Type: "AdaptiveCard", Schema: cardSchema, Version: cardVersion}
	for _, row := range rows {
		for len(row) > 0 {
			n := min(len(row), maxActions)
			set := element{Type: "ActionSet"}
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
	c.Body = append(textOnCard(text), c.Body...)
	return &outAttachment{ContentType: cardType, Content: c}
}

const fence = "```"

// textOnCard returns a text as elements. A TextBlock knows emphasis, lists and links; fenced code goes into elements of
// its own, because a TextBlock would show the fences and read the code as Markdown.
func textOnCard(text string) []element {
	var out []element
	for i, part := range strings.Split("\n"+text, "\n"+fence) {
		switch {
		case i%2 == 0:
			if part = strings.Trim(part, "\n"); part != "" {
				out = append(out, element{Type: "TextBlock", Text: part, Wrap: true})
			}
		default:
			_, code, _ := strings.Cut(part, "\n") // the first line names the language
			if code != "" {
				out = append(out, element{Type: "RichTextBlock", Inlines: []textRun{{Type: "TextRun", Text: code, Font: "Monospace"}}})
			}
		}
	}
	return out
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
