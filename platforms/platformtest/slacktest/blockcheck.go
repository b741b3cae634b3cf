package slacktest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Limits of Block Kit, from its reference.
const (
	maxBlocks      = 50
	maxTextObject  = 3000
	maxMarkdown    = 12000 // in all markdown blocks of a message
	maxTableRows   = 100
	maxTableCols   = 20
	maxTableLetter = 10000
)

// messageBlocks are the types that a message may have.
var messageBlocks = []string{
	"actions", "alert", "call", "card", "carousel", "container", "context", "context_actions", "data_table", "data_visualization",
	"divider", "header", "image", "input", "markdown", "plan", "rich_text", "section", "table", "task_card", "video",
}

// checker collects what is wrong with blocks, worded as Slack words it.
type checker struct {
	errors   []string
	tooLong  bool // msg_blocks_too_long
	ids      map[string]bool
	markdown int
	tables   int
}

func (c *checker) bad(pointer, format string, args ...any) {
	c.errors = append(c.errors, fmt.Sprintf(format, args...)+" [json-pointer:"+pointer+"]")
}

// checkBlocks returns Slack's refusal of blocks, nil when they are fine.
func checkBlocks(raw string, most int) error {
	if raw == "" {
		return nil
	}
	var shape []json.RawMessage
	if json.Unmarshal([]byte(raw), &shape) != nil {
		return refusal{code: "invalid_blocks_format"}
	}
	c := &checker{ids: map[string]bool{}}
	if len(shape) > most {
		c.bad("/blocks", "no more than %d items allowed", most)
	}
	for i, one := range shape {
		pointer := fmt.Sprintf("/blocks/%d", i)
		var b block
		if err := json.Unmarshal(one, &b); err != nil {
			c.bad(pointer, "failed to match all allowed schemas")
			continue
		}
		c.block(pointer, b)
	}
	if len(c.errors) > 0 {
		return refusal{code: "invalid_blocks", errors: c.errors}
	}
	if c.tooLong {
		return refusal{code: "msg_blocks_too_long"}
	}
	return nil
}

func (c *checker) block(at string, b block) {
	if !slices.Contains(messageBlocks, b.Type) {
		c.bad(at+"/type", "unsupported type: %s", b.Type)
		return
	}
	c.limit(at+"/block_id", b.BlockID, 0, 255)
	if b.BlockID != "" && c.ids[b.BlockID] {
		c.bad(at+"/block_id", "`block_id` already exists: %s", b.BlockID)
	}
	c.ids[b.BlockID] = true
	switch b.Type {
	case "section":
		c.section(at, b)
	case "header":
		c.object(at+"/text", b.Text, 1, 150, "plain_text")
	case "context":
		c.count(at+"/elements", len(b.Elements), 1, 10)
		for i, e := range b.Elements {
			p := fmt.Sprintf("%s/elements/%d", at, i)
			switch e.Type {
			case "image":
				c.image(p, e)
			case "mrkdwn", "plain_text":
				c.limit(p+"/text", words(e.Text).Text, 1, maxTextObject)
			default:
				c.bad(p+"/type", "unsupported type: %s", e.Type)
			}
		}
	case "actions":
		c.count(at+"/elements", len(b.Elements), 1, 25)
		c.elements(at, b.Elements)
	case "context_actions":
		c.count(at+"/elements", len(b.Elements), 1, 5)
		c.elements(at, b.Elements)
	case "image":
		c.image(at, b)
	case "markdown":
		s := words(b.Text).Text
		c.limit(at+"/text", s, 1, 1<<30)
		c.markdown += utf8.RuneCountInString(s)
		c.tooLong = c.tooLong || c.markdown > maxMarkdown
	case "table":
		c.table(at, b)
	case "rich_text":
		for i, e := range b.Elements {
			if !slices.Contains([]string{"rich_text_section", "rich_text_list", "rich_text_preformatted", "rich_text_quote"}, e.Type) {
				c.bad(fmt.Sprintf("%s/elements/%d/type", at, i), "unsupported type: %s", e.Type)
			}
		}
	}
}

func (c *checker) section(at string, b block) {
	if len(b.Text) == 0 && len(b.Fields) == 0 {
		c.bad(at, "missing required field: text")
	}
	if len(b.Text) > 0 {
		c.object(at+"/text", b.Text, 1, maxTextObject, "mrkdwn", "plain_text")
	}
	c.count(at+"/fields", len(b.Fields), 0, 10)
	for i, f := range b.Fields {
		c.object(fmt.Sprintf("%s/fields/%d", at, i), encode(f), 1, 2000, "mrkdwn", "plain_text")
	}
	if b.Accessory != nil {
		if b.Accessory.Type == "image" {
			c.image(at+"/accessory", *b.Accessory)
		} else {
			c.element(at+"/accessory", *b.Accessory)
		}
	}
}

func (c *checker) image(at string, b block) {
	if b.ImageURL == "" && len(b.SlackFile) == 0 {
		c.bad(at, "missing required field: image_url")
	}
	c.limit(at+"/image_url", b.ImageURL, 0, 3000)
	c.limit(at+"/alt_text", b.AltText, 1, 2000)
}

func (c *checker) elements(at string, elements []block) {
	ids := map[string]bool{}
	for i, e := range elements {
		p := fmt.Sprintf("%s/elements/%d", at, i)
		c.element(p, e)
		if e.ActionID != "" && ids[e.ActionID] {
			c.bad(p+"/action_id", "`action_id` already exists: %s", e.ActionID)
		}
		ids[e.ActionID] = true
	}
}

func (c *checker) element(at string, e block) {
	if !slices.Contains(interactive, e.Type) {
		c.bad(at+"/type", "unsupported type: %s", e.Type)
		return
	}
	c.limit(at+"/action_id", e.ActionID, 0, 255)
	switch e.Type {
	case "button":
		c.object(at+"/text", e.Text, 1, 75, "plain_text")
		c.limit(at+"/value", e.Value, 0, 2000)
		c.limit(at+"/url", e.URL, 0, 3000)
		var style string
		if len(e.Style) > 0 && (json.Unmarshal(e.Style, &style) != nil || style != "primary" && style != "danger") {
			c.bad(at+"/style", "invalid value: %s", e.Style)
		}
	case "static_select", "multi_static_select", "radio_buttons", "checkboxes", "overflow":
		if e.Placeholder != nil {
			c.object(at+"/placeholder", encode(e.Placeholder), 1, 150, "plain_text")
		}
		most := map[string]int{"overflow": 5, "radio_buttons": 10, "checkboxes": 10}[e.Type]
		if most == 0 {
			most = 100
		}
		options := e.allOptions()
		c.count(at+"/options", len(options), 1, most)
		for i, o := range options {
			p := fmt.Sprintf("%s/options/%d", at, i)
			c.object(p+"/text", encode(o.Text), 1, 75, "plain_text", "mrkdwn")
			c.limit(p+"/value", o.Value, 1, 150)
		}
	}
}

func (c *checker) table(at string, b block) {
	if c.tables++; c.tables > 1 {
		c.bad(at, "only one table block is allowed")
	}
	c.count(at+"/rows", len(b.Rows), 1, maxTableRows)
	letters := 0
	for i, row := range b.Rows {
		c.count(fmt.Sprintf("%s/rows/%d", at, i), len(row), 1, maxTableCols)
		for j, one := range row {
			if one.Type != "raw_text" && one.Type != "raw_number" && one.Type != "rich_text" {
				c.bad(fmt.Sprintf("%s/rows/%d/%d/type", at, i, j), "unsupported type: %s", one.Type)
			}
			if one.Type == "raw_text" && one.Text == "" {
				c.bad(fmt.Sprintf("%s/rows/%d/%d/text", at, i, j), "must be more than 0 characters")
			}
			letters += utf8.RuneCountInString(one.Text)
			for _, e := range one.Elements {
				for _, in := range e.Elements {
					letters += utf8.RuneCountInString(words(in.Text).Text)
				}
			}
		}
	}
	if letters > maxTableLetter {
		c.bad(at, "must be less than %d characters", maxTableLetter+1)
	}
}

// object checks a text object.
func (c *checker) object(at string, raw json.RawMessage, least, most int, kinds ...string) {
	var t text
	if len(raw) == 0 {
		c.bad(at, "missing required field: %s", at[strings.LastIndexByte(at, '/')+1:])
		return
	}
	if json.Unmarshal(raw, &t) != nil || !slices.Contains(kinds, t.Type) {
		c.bad(at, "failed to match all allowed schemas")
		return
	}
	c.limit(at+"/text", t.Text, least, most)
}

func (c *checker) limit(at, s string, least, most int) {
	n := utf8.RuneCountInString(s)
	if n < least {
		c.bad(at, "must be more than %d characters", least-1)
	}
	if n > most {
		c.bad(at, "must be less than %d characters", most+1)
	}
}

func (c *checker) count(at string, n, least, most int) {
	if n < least {
		c.bad(at, "no fewer than %d items allowed", least)
	}
	if n > most {
		c.bad(at, "no more than %d items allowed", most)
	}
}
