package teams

import (
	"context"
	"html"
	"regexp"
	"strings"

	"herald/platforms"
)

// verdict says what becomes of a message.
type verdict struct {
	drop      string // a reason; empty to hand the message on
	addressed bool
	text      string // without markup of mentions, the bot's own left out
	quote     *platforms.Quote
}

// judge applies the rules of where the bot answers. Who may talk is not decided here.
func (a *Adapter) judge(ctx context.Context, act *activity, root string) (verdict, error) {
	text, named := a.plainText(act)
	v := verdict{text: text}
	var err error
	if v.quote, v.text, err = a.quoteOf(ctx, act, v.text); err != nil {
		return v, err
	}
	if act.kind() == personal {
		v.addressed = true
		return v, nil
	}
	if a.s.BotsRequireMention && isBotParty(act.From) && !named {
		v.drop = dropBot
		return v, nil
	}
	replied := v.quote != nil && v.quote.Own
	for _, id := range []string{act.ReplyToID, root} {
		if replied || id == "" || id == act.ID {
			continue
		}
		if replied, err = a.isOwn(ctx, act, id); err != nil {
			return v, err
		}
	}
	v.addressed = named || replied || a.s.patterns.In(v.text)
	chat, _ := act.place()
	if !v.addressed && a.s.RequireMention && !a.s.free[chat] {
		v.drop = dropUnmentioned
	}
	return v, nil
}

var atTag = regexp.MustCompile(`(?is)<at\b[^>]*>(.*?)</at>`)

// plainText returns the text without the markup of mentions and whether the bot is named. The bot's own mention is left
// out, other names stay. Without mention entities a tag with the bot's name counts.
func (a *Adapter) plainText(act *activity) (text string, named bool) {
	text = act.Text
	mentions := act.mentions()
	for _, m := range mentions {
		if m.Text == "" {
			named = named || a.isBot(m.Mentioned.ID)
			continue
		}
		if a.isBot(m.Mentioned.ID) {
			named = true
			text = dropMention(text, m.Text)
			continue
		}
		name := m.Mentioned.Name
		if name == "" {
			name = stripTags(m.Text)
		}
		text = strings.Replace(text, m.Text, "@"+name, 1)
	}
	if len(mentions) == 0 && act.Recipient.Name != "" {
		for _, tag := range atTag.FindAllStringSubmatch(text, maxMentions) {
			if strings.EqualFold(strings.TrimSpace(html.UnescapeString(tag[1])), act.Recipient.Name) {
				named = true
				text = dropMention(text, tag[0])
			}
		}
	}
	text = atTag.ReplaceAllString(text, "$1")
	text = strings.ReplaceAll(text, "&nbsp;", " ")
	if act.TextFormat == "xml" {
		text = html.UnescapeString(stripTags(text))
	}
	return strings.TrimSpace(strings.ReplaceAll(text, "\r\n", "\n")), named
}

// dropMention takes the first copy of a mention out, with the space behind it and, at the beginning of a text, the comma
// or colon that people put after a name.
func dropMention(text, tag string) string {
	before, after, found := strings.Cut(text, tag)
	if !found {
		return text
	}
	if strings.TrimSpace(before) == "" {
		after = strings.TrimLeft(after, ",:")
	}
	for _, space := range []string{"&nbsp;", "\u00a0", " "} {
		after = strings.TrimPrefix(after, space)
	}
	return before + after
}

var anyTag = regexp.MustCompile(`(?s)<[^>]*>`)

func stripTags(s string) string { return anyTag.ReplaceAllString(s, "") }

var (
	quoteBlock   = regexp.MustCompile(`(?is)<blockquote[^>]*itemtype="http://schema\.skype\.com/Reply"[^>]*itemid="([0-9]{1,30})"[^>]*>(.*?)</blockquote>`)
	quoteAuthor  = regexp.MustCompile(`(?is)<strong[^>]*itemprop="mri"[^>]*>(.*?)</strong>`)
	quotePreview = regexp.MustCompile(`(?is)<p[^>]*itemprop="preview"[^>]*>(.*?)</p>`)
)

// maxMirror is how much of the HTML of a message is looked at.
const maxMirror = 64 << 10

// quoteOf returns the message that act answers, and the text without the repetition of it. In a channel the root of the
// thread is no quote.
func (a *Adapter) quoteOf(ctx context.Context, act *activity, text string) (*platforms.Quote, string, error) {
	q := platforms.Quote{}
	if block := quoteBlock.FindStringSubmatch(act.mirror()); block != nil {
		q.ID = platforms.MessageID(block[1])
		if author := quoteAuthor.FindStringSubmatch(block[2]); author != nil {
			q.AuthorName = words(author[1])
		}
		if preview := quotePreview.FindStringSubmatch(block[2]); preview != nil {
			q.Text = words(preview[1])
			if rest, ok := strings.CutPrefix(text, q.Text); ok && q.Text != "" {
				text = strings.TrimSpace(rest)
			}
		}
	} else if act.kind() != channel && messagePattern.MatchString(act.ReplyToID) {
		q.ID = platforms.MessageID(act.ReplyToID)
	}
	if q.ID == "" {
		return nil, text, nil
	}
	own, err := a.isOwn(ctx, act, string(q.ID))
	q.Own = own
	return &q, text, err
}

func words(markup string) string {
	return strings.TrimSpace(html.UnescapeString(stripTags(markup)))
}

// mirror returns the message as HTML, which Teams sends beside the text.
func (a *activity) mirror() string {
	for _, at := range a.Attachments {
		if at.ContentType == "text/html" && len(at.Content) <= maxMirror {
			return jsonString(at.Content)
		}
	}
	return ""
}

// isOwn reports whether a message of the activity's chat is one of ours.
func (a *Adapter) isOwn(ctx context.Context, act *activity, id string) (bool, error) {
	chat, _ := act.place()
	return a.own.Has(ctx, ownName(chat, id))
}

func ownName(chat, id string) string { return chat + "/" + id }

// isBot reports whether an id is ours, in the form of rosters or bare.
func (a *Adapter) isBot(id string) bool {
	return strings.EqualFold(strings.TrimPrefix(id, "28:"), a.s.ClientID)
}

func isBotParty(p party) bool {
	return strings.HasPrefix(p.ID, "28:") || strings.EqualFold(p.Role, "bot") || strings.EqualFold(p.Role, "skill")
}
