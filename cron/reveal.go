package cron

import (
	"fmt"
	"strings"
	"unicode"
)

// reveal removes the characters of a text that a reader can't see and that a model reads all the same: zero-width ones,
// controls of the direction of writing, tags, fillers. found names the first one, "" for none. Those that writing needs
// stay: joiners of emoji and of the scripts that have them, one variation selector behind what it varies, flags.
func reveal(text string) (clean, found string) {
	runes := []rune(text)
	var b strings.Builder
	b.Grow(len(text))
	for i, r := range runes {
		if !hidden(runes, i) {
			b.WriteRune(r)
			continue
		}
		if found == "" {
			found = fmt.Sprintf("U+%04X, character %d", r, i+1)
		}
	}
	if found == "" {
		return text, ""
	}
	return b.String(), found
}

const (
	zeroWidthNonJoiner = 0x200C
	zeroWidthJoiner    = 0x200D
	blackFlag          = 0x1F3F4
	firstTag, lastTag  = 0xE0020, 0xE007F
	longestTag         = 7 // of the flags of England, Scotland and Wales
)

// fillers are letters that have no shape.
var fillers = map[rune]bool{0x034F: true, 0x115F: true, 0x1160: true, 0x17B4: true, 0x17B5: true, 0x2800: true, 0x3164: true, 0xFFA0: true}

// joiningScripts are those in which letters change their shape by what they are joined to.
var joiningScripts = []*unicode.RangeTable{unicode.Arabic, unicode.Syriac, unicode.Mongolian, unicode.Devanagari, unicode.Bengali,
	unicode.Gurmukhi,
	unicode.Gujarati, unicode.Oriya, unicode.Tamil, unicode.Telugu, unicode.Kannada, unicode.Malayalam, unicode.Sinhala, unicode.Khmer,
	unicode.Myanmar}

func hidden(runes []rune, i int) bool {
	r := runes[i]
	if r < unicode.MaxASCII {
		return r < ' ' && r != '\n' && r != '\t' && r != '\r'
	}
	var before, after rune
	if i > 0 {
		before = runes[i-1]
	}
	if i+1 < len(runes) {
		after = runes[i+1]
	}
	switch {
	case r == zeroWidthJoiner && pictured(before) && pictured(after):
		return false
	case (r == zeroWidthJoiner || r == zeroWidthNonJoiner) && unicode.In(before, joiningScripts...):
		return false
	case r >= firstTag && r <= lastTag:
		return !flagTag(runes, i)
	case unicode.Is(unicode.Variation_Selector, r):
		return before <= ' ' || unicode.Is(unicode.Variation_Selector, before) || r > 0xFFFF && !unicode.Is(unicode.Han, before)
	case unicode.Is(unicode.Prepended_Concatenation_Mark, r):
		return false
	}
	return fillers[r] || unicode.In(r, unicode.Cf, unicode.Cc, unicode.Zl, unicode.Zp)
}

// pictured reports whether a rune is part of an emoji.
func pictured(r rune) bool {
	return unicode.In(r, unicode.So, unicode.Sk) || r == 0xFE0F
}

// flagTag reports whether a tag belongs to a flag.
func flagTag(runes []rune, i int) bool {
	for back := 1; back <= longestTag && back <= i; back++ {
		switch r := runes[i-back]; {
		case r == blackFlag:
			return true
		case r < firstTag || r >= lastTag:
			return false
		}
	}
	return false
}
