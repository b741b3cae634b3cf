package teamstest

import (
	"encoding/base64"
	"encoding/json"
	"strings"
)

// look is what people see of an activity's attachments.
type look struct {
	cards   []json.RawMessage
	buttons []Button
	files   []File
	texts   []string
}

// The content types of attachments that Teams takes.
const (
	adaptiveCard = "application/vnd.microsoft.card.adaptive"
	consentCard  = "application/vnd.microsoft.teams.card.file.consent"
	fileInfoCard = "application/vnd.microsoft.teams.card.file.info"
	downloadInfo = "application/vnd.microsoft.teams.file.download.info"
)

// maxPicture is the most bytes of a picture in a message.
const maxPicture = 1 << 20

// look reads the attachments of an activity, and refuses those that Teams has no use for.
func (s *Server) look(r *room, message string, a *sent) (*look, error) {
	l := &look{}
	for _, x := range a.Attachments {
		var err error
		switch kind := strings.ToLower(x.ContentType); {
		case kind == adaptiveCard:
			err = l.adaptive(x.Content)
		case kind == consentCard:
			err = s.consentCard(r, message, l, x)
		case kind == fileInfoCard:
			err = s.fileInfo(l, x)
		case strings.HasPrefix(kind, "application/vnd.microsoft.card."), strings.HasPrefix(kind, "application/vnd.microsoft.teams.card."):
			err = l.hero(x.Content)
		case strings.HasPrefix(kind, "image/"):
			err = l.picture(x)
		default:
			err = refuse(400, "BadArgument", "Unknown attachment type")
		}
		if err != nil {
			return nil, err
		}
	}
	return l, nil
}

// picture is an image by data URI or URL.
func (l *look) picture(x attachment) error {
	f := File{Name: x.Name, MIME: x.ContentType, Inline: true}
	if data, ok := strings.CutPrefix(x.ContentURL, "data:"); ok {
		head, body, _ := strings.Cut(data, ",")
		if !strings.HasPrefix(head, "image/") || !strings.HasSuffix(head, ";base64") {
			return refuse(400, "BadArgument", "Unknown attachment type")
		}
		raw, err := base64.StdEncoding.DecodeString(body)
		if err != nil {
			return refuse(400, "BadArgument", "Invalid image data")
		}
		if len(raw) > maxPicture {
			return refuse(413, "MessageSizeTooBig", wording(413, "MessageSizeTooBig"))
		}
		f.Body = raw
	} else if f.URL = x.ContentURL; !strings.HasPrefix(f.URL, "http") {
		return refuse(400, "BadArgument", "Invalid image URL")
	}
	l.files = append(l.files, f)
	return nil
}

// element is a part of an Adaptive Card, as far as people press or read it.
type element struct {
	Type    string          `json:"type"`
	Version string          `json:"version"`
	Title   string          `json:"title"`
	Text    string          `json:"text"`
	Verb    string          `json:"verb"`
	Data    json.RawMessage `json:"data"`
	URL     string          `json:"url"`
	Items   []element       `json:"items"`
	Columns []element       `json:"columns"`
	Body    []element       `json:"body"`
	Actions []element       `json:"actions"`
	Card    *element        `json:"card"`
	Inlines []element       `json:"inlines"`
	Facts   []struct {
		Title string `json:"title"`
		Value string `json:"value"`
	} `json:"facts"`
	Rows []struct {
		Cells []element `json:"cells"`
	} `json:"rows"`
}

func (l *look) adaptive(raw json.RawMessage) error {
	var card element
	if err := json.Unmarshal(raw, &card); err != nil || card.Type != "AdaptiveCard" {
		return refuse(400, "BadSyntax", "Failed to parse Adaptive Card")
	}
	if card.Version == "" {
		return refuse(400, "BadSyntax", "Failed to parse Adaptive Card: property 'version' must be specified")
	}
	l.cards = append(l.cards, raw)
	return l.walk(card)
}

// walk reads an element and everything in it, in the order of the screen.
func (l *look) walk(e element) error {
	if strings.HasPrefix(e.Type, "Action.") {
		if e.Title == "" && e.Type != "Action.ToggleVisibility" {
			return refuse(400, "BadSyntax", "Failed to parse Adaptive Card: an action needs a title")
		}
		if e.Card != nil {
			return l.walk(*e.Card)
		}
		l.buttons = append(l.buttons, Button{Title: e.Title, Type: e.Type, Verb: e.Verb, Data: e.Data, URL: e.URL})
		return nil
	}
	if e.Text != "" {
		l.texts = append(l.texts, e.Text)
	}
	for _, f := range e.Facts {
		l.texts = append(l.texts, f.Title+" "+f.Value)
	}
	for _, row := range e.Rows {
		if err := l.walkAll(row.Cells); err != nil {
			return err
		}
	}
	for _, list := range [][]element{e.Body, e.Items, e.Columns, e.Inlines, e.Actions} {
		if err := l.walkAll(list); err != nil {
			return err
		}
	}
	return nil
}

func (l *look) walkAll(list []element) error {
	for _, e := range list {
		if err := l.walk(e); err != nil {
			return err
		}
	}
	return nil
}

// hero reads a hero card and its kin.
func (l *look) hero(raw json.RawMessage) error {
	var card struct {
		Title    string `json:"title"`
		Subtitle string `json:"subtitle"`
		Text     string `json:"text"`
		Buttons  []struct {
			Type  string          `json:"type"`
			Title string          `json:"title"`
			Text  string          `json:"text"`
			Value json.RawMessage `json:"value"`
		} `json:"buttons"`
	}
	if json.Unmarshal(raw, &card) != nil {
		return refuse(400, "BadSyntax", "Failed to parse card")
	}
	l.cards = append(l.cards, raw)
	for _, text := range []string{card.Title, card.Subtitle, card.Text} {
		if text != "" {
			l.texts = append(l.texts, text)
		}
	}
	for _, b := range card.Buttons {
		button := Button{Title: b.Title, Type: b.Type, Data: b.Value}
		switch b.Type {
		case "messageBack", "imBack":
			button.Data = mustJSON(map[string]any{"msteams": map[string]any{"type": b.Type, "text": b.Text, "value": b.Value}})
		case "openUrl", "signin":
			_ = json.Unmarshal(b.Value, &button.URL)
		case "invoke":
		default:
			return refuse(400, "BadArgument", "Unknown card action type")
		}
		l.buttons = append(l.buttons, button)
	}
	return nil
}
