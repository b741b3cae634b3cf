package signal

import (
	"slices"
	"strings"

	"herald/platforms"
	"herald/platforms/format"
	"unicode/utf16"
)

// placeholder is the unit that stands for a mention in a text.
const placeholder = 0xfffc

// units counts text as Signal does.
func units(text string) int { return format.Length(text, platforms.UTF16) }

// spoken puts the ids of people in place of their mentions and takes our own mention out, so that the model does not
// read it as an order. named says that we were mentioned. Ranges that don't fit the text are ignored.
func spoken(text string, mentions []mention, own func(number, uuid string) bool) (out string, named bool) {
	if len(mentions) == 0 {
		return strings.TrimSpace(text), false
	}
	text16 := utf16.Encode([]rune(text))
	ordered := slices.Clone(mentions)
	slices.SortStableFunc(ordered, func(a, b mention) int { return b.Start - a.Start }) // from the end
	end := len(text16)
	for _, m := range ordered {
		number, uuid := ids(m.Name, m.Number, m.UUID)
		mine := own(number, uuid)
		named = named || mine
		if m.Start < 0 || m.Length <= 0 || m.Start >= end || m.Length > end-m.Start || text16[m.Start] != placeholder {
			continue
		}
		end = m.Start
		who := ""
		if !mine {
			if who = number; who == "" {
				who = uuid
			}
			who = "@" + who
		}
		rest := text16[m.Start+m.Length:]
		if mine && len(rest) > 0 && rest[0] == ' ' && (m.Start == 0 || text16[m.Start-1] == ' ' || text16[m.Start-1] == '\n') {
			rest = rest[1:]
		}
		text16 = slices.Concat(text16[:m.Start], utf16.Encode([]rune(who)), rest)
	}
	return strings.TrimSpace(string(utf16.Decode(text16))), named
}
