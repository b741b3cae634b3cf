package redact

import "strings"

// form describes the tokens of one service: a prefix, then at least min characters of a set.
type form struct {
	prefix string
	min    int
	set    func(byte) bool
	// mixed asks for a digit or an upper-case letter behind the prefix, where the prefix alone could begin an
	// ordinary word.
	mixed bool
}

func isDotted(c byte) bool { return isWord(c) || c == '.' }

func isUpper(c byte) bool { return 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' }

func isHex(c byte) bool { return 'a' <= c && c <= 'f' || '0' <= c && c <= '9' }

// forms are the known tokens, after the public documentation of each service (key formats, secret
// scanning partner lists).
var forms = []form{
	// Model providers.
	{"sk-", 16, isWord, true}, // OpenAI, Anthropic (sk-ant-), OpenRouter (sk-or-), DeepSeek and others
	{"sk_", 24, isWord, true}, // ElevenLabs, Stripe (sk_live_)
	{"gsk_", 20, isAlnum, false}, {"xai-", 20, isWord, true}, {"pplx-", 20, isAlnum, true},
	{"hf_", 20, isAlnum, true}, {"r8_", 30, isAlnum, true}, {"nvapi-", 20, isWord, true},
	{"csk-", 20, isWord, true}, {"jina_", 20, isWord, true}, {"tvly-", 16, isWord, true},
	{"fc-", 16, isAlnum, true}, {"bb_live_", 16, isWord, true}, {"e2b_", 20, isAlnum, true},
	{"AIza", 35, isWord, false}, {"ya29.", 20, isDotted, false}, {"GOCSPX-", 20, isWord, false},
	{"1//0", 30, isWord, true},
	// Source hosts and package registries.
	{"ghp_", 20, isAlnum, false}, {"gho_", 20, isAlnum, false}, {"ghu_", 20, isAlnum, false},
	{"ghs_", 20, isAlnum, false}, {"ghr_", 20, isAlnum, false}, {"github_pat_", 20, isWord, false},
	{"glpat-", 16, isDotted, false}, {"gldt-", 16, isWord, true}, {"glrt-", 16, isWord, true},
	{"glcbt-", 16, isWord, true}, {"glptt-", 16, isWord, true}, {"glsoat-", 16, isWord, true},
	{"ATATT3", 30, isWord, true}, {"ATBB", 24, isAlnum, true},
	{"npm_", 30, isAlnum, true}, {"pypi-", 40, isWord, true}, {"rubygems_", 30, isHex, false},
	{"dckr_pat_", 20, isWord, false}, {"dckr_oat_", 20, isWord, false}, {"CLOJARS_", 30, isAlnum, false},
	// Chat.
	{"xoxb-", 10, isWord, false}, {"xoxp-", 10, isWord, false}, {"xoxa-", 10, isWord, false},
	{"xoxr-", 10, isWord, false}, {"xoxs-", 10, isWord, false}, {"xoxe-", 10, isWord, false},
	{"xoxe.", 10, isDotted, false}, {"xapp-", 10, isWord, false},
	// Clouds and platforms.
	{"AKIA", 16, isUpper, false}, {"ASIA", 16, isUpper, true}, {"ABIA", 16, isUpper, true},
	{"dop_v1_", 30, isHex, false}, {"doo_v1_", 30, isHex, false}, {"dor_v1_", 30, isHex, false},
	{"dapi", 32, isHex, false}, {"hvs.", 20, isWord, true}, {"hvb.", 20, isWord, true},
	{"tskey-", 16, isWord, true}, {"sbp_", 30, isHex, false}, {"sb_secret_", 16, isWord, false},
	{"pscale_tkn_", 20, isWord, false}, {"pscale_pw_", 20, isWord, false}, {"HRKU-", 30, isWord, false},
	{"FlyV1 fm2_", 20, isBase64, false}, {"rnd_", 20, isAlnum, true}, {"pul-", 30, isHex, false},
	{"dp.pt.", 20, isAlnum, false}, {"dp.st.", 20, isDotted, false}, {"CFPAT-", 20, isWord, false},
	// Payment, mail, tools.
	{"rk_live_", 16, isAlnum, false}, {"rk_test_", 16, isAlnum, false}, {"whsec_", 16, isBase64, false},
	{"shpat_", 20, isHex, false}, {"shpss_", 20, isHex, false}, {"shpca_", 20, isHex, false},
	{"shppa_", 20, isHex, false}, {"sq0atp-", 16, isWord, false}, {"sq0csp-", 16, isWord, false},
	{"SG.", 20, isDotted, true}, {"xkeysib-", 20, isWord, false}, {"key-", 32, isHex, true},
	{"lin_api_", 20, isAlnum, false}, {"ntn_", 20, isAlnum, true}, {"secret_", 40, isAlnum, true},
	{"figd_", 20, isWord, true}, {"PMAK-", 20, isWord, false}, {"NRAK-", 20, isUpper, false},
	{"glsa_", 20, isWord, true}, {"glc_", 30, isBase64, true}, {"sntrys_", 20, isWord, true},
	{"sntryu_", 20, isHex, false}, {"bkua_", 20, isHex, false}, {"CCIPAT_", 20, isWord, false},
	{"AGE-SECRET-KEY-1", 30, isUpper, false}, {"ops_eyJ", 30, isWord, false},
}

// mixedWindow is how far behind a prefix a digit or an upper-case letter is looked for.
const mixedWindow = 48

// byFirst sorts the forms by their first byte; starts marks the bytes at which any secret may begin.
var (
	byFirst = func() (t [256][]form) {
		for _, f := range forms {
			t[f.prefix[0]] = append(t[f.prefix[0]], f)
		}
		return t
	}()
	starts = func() (t [256]bool) {
		for _, f := range forms {
			t[f.prefix[0]] = true
		}
		for _, c := range "eBbMNO" { // JWT, bearer, Discord
			t[c] = true
		}
		return t
	}()
)

// token hides a token of a known form that begins at i.
func (sc *scanner) token(i int) int {
	for _, f := range byFirst[sc.s[i]] {
		if !strings.HasPrefix(sc.s[i:], f.prefix) || !f.fits(sc.s[i+len(f.prefix):]) {
			continue
		}
		end := i + len(f.prefix)
		for end < len(sc.s) && f.set(sc.s[end]) {
			end++
		}
		// A full stop behind a dotted token ends the sentence.
		for end > i && sc.s[end-1] == '.' {
			end--
		}
		return sc.maskRange(i, end)
	}
	switch sc.s[i] {
	case 'e':
		return sc.jwt(i)
	case 'M', 'N', 'O':
		return sc.discord(i)
	}
	return i
}

// fits looks at a bounded part of what follows the prefix.
func (f form) fits(rest string) bool {
	mixed := !f.mixed
	for n := 0; n < max(f.min, mixedWindow); n++ {
		if n >= len(rest) || !f.set(rest[n]) {
			return n >= f.min && mixed
		}
		mixed = mixed || isUpper(rest[n])
	}
	return mixed
}

// base64run returns the end of the run of base64url characters around i. The last one is remembered.
func (sc *scanner) base64run(i int) int {
	if i >= sc.runStart && i < sc.runEnd {
		return sc.runEnd
	}
	end := i
	for end < len(sc.s) && isWord(sc.s[end]) {
		end++
	}
	sc.runStart, sc.runEnd = i, end
	return end
}

// jwt hides header.payload.signature, each in base64url; the first two begin with {" in it.
func (sc *scanner) jwt(i int) int {
	if !strings.HasPrefix(sc.s[i:], "eyJ") {
		return i
	}
	end := sc.base64run(i)
	if end-i < 10 || !strings.HasPrefix(sc.s[end:], ".eyJ") {
		return i
	}
	end = sc.base64run(end + 1)
	if end < len(sc.s) && sc.s[end] == '.' {
		if signed := sc.base64run(end + 1); signed > end+1 {
			end = signed
		}
	}
	return sc.maskRange(i, end)
}

// discord hides a bot token: 23 to 28 characters, a dot, 6 or 7, a dot, 27 or more.
func (sc *scanner) discord(i int) int {
	a := sc.base64run(i)
	if n := a - i; n < 23 || n > 28 || a >= len(sc.s) || sc.s[a] != '.' {
		return i
	}
	b := sc.base64run(a + 1)
	if n := b - a - 1; n < 6 || n > 7 || b >= len(sc.s) || sc.s[b] != '.' {
		return i
	}
	c := sc.base64run(b + 1)
	if c-b-1 < 27 {
		return i
	}
	return sc.maskRange(i, c)
}

// botToken hides a Telegram token: 8 to 10 digits, the colon at i, 34 to 36 characters.
func (sc *scanner) botToken(i int) int {
	start := i
	for start > sc.done && i-start <= 10 && '0' <= sc.s[start-1] && sc.s[start-1] <= '9' {
		start--
	}
	if n := i - start; n < 8 || n > 10 {
		return i
	}
	if end := sc.base64run(i + 1); end-i-1 >= 34 && end-i-1 <= 36 {
		return sc.maskRange(start, end)
	}
	return i
}

// bearer hides what follows the word Bearer, if it looks like a token.
func (sc *scanner) bearer(i int) int {
	const word = "bearer "
	if len(sc.s)-i < len(word) || !strings.EqualFold(sc.s[i:i+len(word)], word) {
		return i
	}
	from := i + len(word)
	to := valueEnd(sc.s, from)
	if v := sc.s[from:to]; len(v) >= 16 && looksRandom(v) && !isMasked(v) && !isReference(v) {
		return sc.maskRange(from, to)
	}
	return i
}
