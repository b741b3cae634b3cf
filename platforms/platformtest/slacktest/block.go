package slacktest

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
)

// block is any block or element of Block Kit, as far as the fake reads them. Fields whose type depends on the
// block's are raw.
type block struct {
	Type        string          `json:"type"`
	BlockID     string          `json:"block_id"`
	ActionID    string          `json:"action_id"`
	Text        json.RawMessage `json:"text"` // a text object, or a string
	Fields      []text          `json:"fields"`
	Elements    []block         `json:"elements"`
	Accessory   *block          `json:"accessory"`
	Element     *block          `json:"element"`
	Actions     []block         `json:"actions"`
	Label       json.RawMessage `json:"label"`
	Placeholder *text           `json:"placeholder"`
	Value       string          `json:"value"`
	URL         string          `json:"url"`
	Style       json.RawMessage `json:"style"`
	Confirm     json.RawMessage `json:"confirm"`
	Options     []option        `json:"options"`
	Groups      []struct {
		Options []option `json:"options"`
	} `json:"option_groups"`
	Positive *block `json:"positive_button"`
	Negative *block `json:"negative_button"`

	Title     json.RawMessage `json:"title"`
	ImageURL  string          `json:"image_url"`
	SlackFile json.RawMessage `json:"slack_file"`
	AltText   string          `json:"alt_text"`
	Rows      [][]cell        `json:"rows"`
	Tasks     []block         `json:"tasks"`
	Details   *block          `json:"details"`
	Output    *block          `json:"output"`

	// Of rich_text elements.
	UserID    string `json:"user_id"`
	ChannelID string `json:"channel_id"`
	GroupID   string `json:"usergroup_id"`
	Range     string `json:"range"`
	Name      string `json:"name"`
	Unicode   string `json:"unicode"`
	Indent    int    `json:"indent"`
	Fallback  string `json:"fallback"`
}

// text is a text object.
type text struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// cell is a cell of a table.
type cell struct {
	Type     string          `json:"type"`
	Text     string          `json:"text"`
	Elements []block         `json:"elements"`
	Value    json.RawMessage `json:"value"`
}

// option is an entry of a select.
type option struct {
	Text  text   `json:"text"`
	Value string `json:"value"`
}

// words returns a text that is a text object or a string.
func words(raw json.RawMessage) text {
	var t text
	if json.Unmarshal(raw, &t) != nil {
		_ = json.Unmarshal(raw, &t.Text)
	}
	return t
}

// show is a text object as people read it.
func (t *team) show(o text) string {
	if o.Type == "mrkdwn" {
		return t.read(o.Text)
	}
	return o.Text
}

// readBlocks is what people read of blocks, without the labels of buttons.
func (t *team) readBlocks(blocks []block) string {
	var lines []string
	for _, b := range blocks {
		if s := t.readBlock(b); s != "" {
			lines = append(lines, s)
		}
	}
	return strings.Join(lines, "\n")
}

func (t *team) readBlock(b block) string {
	var parts []string
	switch b.Type {
	case "section", "header", "markdown", "alert", "input":
		parts = append(parts, t.show(words(cmpRaw(b.Text, b.Label))))
		for _, f := range b.Fields {
			parts = append(parts, t.show(f))
		}
	case "context":
		for _, e := range b.Elements {
			parts = append(parts, cmp.Or(t.show(text{e.Type, words(e.Text).Text}), e.AltText))
		}
		return strings.Join(slices.DeleteFunc(parts, empty), " ")
	case "rich_text":
		return t.readRich(b.Elements)
	case "image":
		parts = append(parts, cmp.Or(t.show(words(b.Title)), b.AltText))
	case "table", "data_table":
		for _, row := range b.Rows {
			var cells []string
			for _, c := range row {
				cells = append(cells, cmp.Or(c.Text, t.readRich(c.Elements), strings.Trim(string(c.Value), `"`)))
			}
			parts = append(parts, strings.Join(cells, " | "))
		}
	case "plan":
		parts = append(parts, t.show(words(b.Title)))
		for _, task := range b.Tasks {
			parts = append(parts, t.readBlock(task))
		}
	case "task_card":
		parts = append(parts, t.show(words(b.Title)))
		for _, part := range []*block{b.Details, b.Output} {
			if part != nil {
				parts = append(parts, t.readBlock(*part))
			}
		}
	case "card":
		parts = append(parts, t.show(words(b.Title)), t.show(words(b.Text)))
	case "carousel", "container":
		return t.readBlocks(b.Elements)
	}
	return strings.Join(slices.DeleteFunc(parts, empty), "\n")
}

func empty(s string) bool { return s == "" }

func cmpRaw(a, b json.RawMessage) json.RawMessage {
	if len(a) > 0 {
		return a
	}
	return b
}

// readRich is what people read of the elements of a rich_text block.
func (t *team) readRich(elements []block) string {
	var b strings.Builder
	for i, e := range elements {
		switch e.Type {
		case "rich_text_list":
			for _, item := range e.Elements {
				b.WriteString(strings.Repeat("  ", e.Indent) + "• " + t.readRich(item.Elements) + "\n")
			}
			continue
		case "rich_text_section", "rich_text_preformatted", "rich_text_quote":
			if i > 0 && !strings.HasSuffix(b.String(), "\n") {
				b.WriteByte('\n')
			}
			if e.Type == "rich_text_quote" {
				b.WriteString("> ")
			}
			b.WriteString(t.readRich(e.Elements))
		case "user":
			b.WriteString("@" + t.nameOf(e.UserID))
		case "channel":
			name := e.ChannelID
			if c := t.find(name); c != nil {
				name = c.Name
			}
			b.WriteString("#" + name)
		case "usergroup":
			b.WriteString("@" + e.GroupID)
		case "broadcast":
			b.WriteString("@" + e.Range)
		case "emoji":
			b.WriteString(":" + e.Name + ":")
		case "link":
			b.WriteString(cmp.Or(words(e.Text).Text, e.URL))
		case "date":
			b.WriteString(e.Fallback)
		default:
			b.WriteString(words(e.Text).Text)
		}
	}
	return strings.TrimRight(b.String(), "\n")
}

// interactive are the elements that people can act on.
var interactive = []string{
	"button", "static_select", "multi_static_select", "users_select", "conversations_select", "channels_select", "overflow", "checkboxes",
	"radio_buttons", "datepicker", "timepicker", "plain_text_input", "feedback_buttons", "icon_button", "workflow_button",
}

// buttonsOf returns what people can act on, in order.
func buttonsOf(blocks []block) []Button {
	var out []Button
	for _, b := range blocks {
		for _, e := range actionsOf(b) {
			out = append(out, e.button(b.BlockID)...)
		}
	}
	return out
}

// actionsOf returns the interactive elements of a block.
func actionsOf(b block) []block {
	var out []block
	for _, e := range slices.Concat(b.Elements, b.Actions) {
		if slices.Contains(interactive, e.Type) {
			out = append(out, e)
		} else if b.Type == "carousel" || b.Type == "container" {
			out = append(out, actionsOf(e)...)
		}
	}
	for _, e := range []*block{b.Accessory, b.Element} {
		if e != nil && slices.Contains(interactive, e.Type) {
			out = append(out, *e)
		}
	}
	return out
}

func (b block) button(blockID string) []Button {
	if b.Type == "feedback_buttons" {
		var out []Button
		for _, side := range []*block{b.Positive, b.Negative} {
			if side != nil {
				out = append(out, Button{Label: words(side.Text).Text, ActionID: b.ActionID, BlockID: blockID, Value: side.Value, Kind: b.Type})
			}
		}
		return out
	}
	made := Button{Label: words(b.Text).Text, ActionID: b.ActionID, BlockID: blockID, Value: b.Value, URL: b.URL, Kind: b.Type,
		Confirm: len(b.Confirm) > 0}
	_ = json.Unmarshal(b.Style, &made.Style)
	if b.Placeholder != nil {
		made.Label = b.Placeholder.Text
	}
	for _, o := range b.allOptions() {
		made.Options = append(made.Options, o.Value)
	}
	return []Button{made}
}

func (b block) allOptions() []option {
	all := slices.Clone(b.Options)
	for _, g := range b.Groups {
		all = append(all, g.Options...)
	}
	return all
}

// legacyButtons returns the buttons of attachments: those of their blocks, and actions of the old kind.
func legacyButtons(attachments json.RawMessage) []Button {
	var list []struct {
		Blocks  []block `json:"blocks"`
		Actions []struct {
			Name  string `json:"name"`
			Text  string `json:"text"`
			Type  string `json:"type"`
			Value string `json:"value"`
			Style string `json:"style"`
			URL   string `json:"url"`
		} `json:"actions"`
	}
	_ = json.Unmarshal(attachments, &list)
	var out []Button
	for _, a := range list {
		out = append(out, buttonsOf(a.Blocks)...)
		for _, b := range a.Actions {
			out = append(out, Button{Label: b.Text, ActionID: b.Name, Value: b.Value, Style: b.Style, URL: b.URL, Kind: b.Type})
		}
	}
	return out
}
