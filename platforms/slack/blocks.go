package slack

import (
	"fmt"
	"strings"

	api "github.com/slack-go/slack"

	"herald/platforms"
	"herald/platforms/format"
	"herald/platforms/wire"
)

// Limits of Block Kit, https://docs.slack.dev/reference/block-kit/blocks.
const (
	maxSection   = 3000  // characters of a section
	maxBlockText = 12000 // characters of all blocks of a message, with room for their frame
	maxRowItems  = 25    // elements of an actions block
	maxOptions   = 100   // options of a select
	maxLabel     = 75    // characters of a button
	maxRows      = 40    // actions blocks, of 50 blocks in all
	actionPrefix = "herald:"
)

// blocks returns what can't be said by text alone: buttons, tables as blocks, thumbs. nil when the text is enough.
func (o *outbound) blocks() []api.Block {
	s := o.a.s
	switch {
	case len(o.out.Buttons) > 0:
		return buttonBlocks(o.body(), o.out.Text.Markdown, o.out.Buttons)
	case o.out.Progress && s.TaskCards:
		return taskCard(o.out.Text)
	case o.out.Progress || o.out.Private != "" || o.out.Interim:
		return nil
	}
	var blocks []api.Block
	if s.RichBlocks {
		blocks = tableBlocks(o.markdown())
	}
	if s.FeedbackButtons && len(o.body()) <= maxBlockText {
		if blocks == nil {
			blocks = sections(o.body(), o.out.Text.Markdown)
		}
		blocks = append(blocks, feedback())
	}
	return blocks
}

// sections returns a text as section blocks of at most 3,000 characters each. A longer one is parted by the common
// splitter, which keeps fences whole; without Markdown it is parted between lines.
func sections(mrkdwn, markdown string) []api.Block {
	var parts []string
	switch {
	case len(mrkdwn) <= maxSection:
		parts = []string{mrkdwn}
	case markdown != "":
		for _, t := range format.Render(markdown, platforms.TextTraits{Dialect: platforms.SlackMrkdwn, Limit: maxSection, Unit: platforms.UTF16,
			CountMarkup: true}) {
			parts = append(parts, t.Body)
		}
	default:
		parts = lines(mrkdwn)
	}
	var blocks []api.Block
	for _, part := range parts {
		if strings.TrimSpace(part) == "" {
			continue
		}
		section := api.NewSectionBlock(api.NewTextBlockObject(api.MarkdownType, part, false, false), nil, nil)
		section.Expand = true
		blocks = append(blocks, section)
	}
	return blocks
}

// lines parts mrkdwn between lines, or outside of escapes and references.
func lines(mrkdwn string) []string {
	var parts []string
	for len(mrkdwn) > maxSection {
		part := cut(mrkdwn, maxSection)
		if i := strings.LastIndexByte(part, '\n'); i > 0 {
			part = part[:i+1]
		} else if i := strings.LastIndexAny(part, "&<"); i > 0 && !strings.ContainsAny(part[i:], ";>") {
			part = part[:i]
		}
		parts = append(parts, part)
		mrkdwn = mrkdwn[len(part):]
	}
	return append(parts, mrkdwn)
}

// buttonBlocks returns text with buttons below it. More than 25 choices become a menu.
func buttonBlocks(mrkdwn, markdown string, rows [][]platforms.Button) []api.Block {
	blocks := sections(mrkdwn, markdown)
	total := 0
	for _, row := range rows {
		total += len(row)
	}
	if total > maxRowItems || len(rows) > maxRows {
		return append(blocks, menus(rows)...)
	}
	n := 0
	for _, row := range rows {
		if len(row) == 0 {
			continue
		}
		elements := make([]api.BlockElement, 0, len(row))
		for _, b := range row {
			button := api.NewButtonBlockElement(fmt.Sprintf("%s%d", actionPrefix, n), b.Data, plainObject(b.Label))
			button.Style = api.Style(b.Style)
			elements = append(elements, button)
			n++
		}
		blocks = append(blocks, api.NewActionBlock("", elements...))
	}
	return blocks
}

// menus returns choices as select menus of at most 100 each.
func menus(rows [][]platforms.Button) []api.Block {
	var options []*api.OptionBlockObject
	for _, row := range rows {
		for _, b := range row {
			options = append(options, api.NewOptionBlockObject(b.Data, plainObject(b.Label), nil))
		}
	}
	var blocks []api.Block
	for i := 0; len(options) > 0; i++ {
		n := min(len(options), maxOptions)
		menu := api.NewOptionsSelectBlockElement(api.OptTypeStatic, plainObject("…"), fmt.Sprintf("%smenu%d", actionPrefix, i), options[:n]...)
		blocks = append(blocks, api.NewActionBlock("", menu))
		options = options[n:]
	}
	return blocks
}

func plainObject(text string) *api.TextBlockObject {
	runes := []rune(text)
	if len(runes) > maxLabel {
		text = string(runes[:maxLabel-1]) + "…"
	}
	return api.NewTextBlockObject(api.PlainTextType, text, true, false)
}

func checkButtons(rows [][]platforms.Button) error {
	count := 0
	for _, row := range rows {
		count += len(row)
	}
	if count > maxRows*maxOptions {
		return platforms.Failure(platforms.BadRequest, "%d buttons are too many", count)
	}
	return wire.CheckButtons(rows)
}

func feedback() api.Block {
	return api.NewContextActionsBlock(feedbackID, api.NewFeedbackButtonsBlockElement(feedbackID,
		api.NewFeedbackButton(api.NewTextBlockObject(api.PlainTextType, "Good answer", false, false), "good"),
		api.NewFeedbackButton(api.NewTextBlockObject(api.PlainTextType, "Bad answer", false, false), "bad")))
}

// taskCard returns a bubble about the work as a card: its first line as the title, the others as details.
func taskCard(t platforms.Text) []api.Block {
	title, rest, _ := strings.Cut(strings.TrimSpace(firstOf(t.Plain, t.Body)), "\n")
	if title == "" {
		return nil
	}
	card := api.NewTaskCardBlock("herald", cut(title, 200))
	if rest = strings.TrimSpace(rest); rest != "" {
		card.Details = api.NewRichTextBlock("", api.NewRichTextSection(api.NewRichTextSectionTextElement(cut(rest, maxSection), nil)))
	}
	return []api.Block{card}
}

// markdownBlocks returns Markdown as the block that Slack renders itself.
func markdownBlocks(markdown string) []api.Block {
	return []api.Block{api.NewMarkdownBlock("", markdown)}
}

// splitMarkdown parts Markdown so that each part fits into one message's blocks.
func splitMarkdown(markdown string) []platforms.Text {
	return format.Render(markdown, platforms.TextTraits{Dialect: platforms.SlackMrkdwn, Limit: maxBlockText - 1000, Unit: platforms.UTF16,
		CountMarkup: true})
}
