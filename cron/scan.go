package cron

import (
	"fmt"
	"strings"
)

// ScanKind is what is wrong with the text of a job.
type ScanKind string

// The kinds, in words that follow "the text".
const (
	ScanOverride  ScanKind = "tells the agent to set aside what it was told"
	ScanExfil     ScanKind = "sends secrets away"
	ScanSecrets   ScanKind = "reads a file of credentials"
	ScanDestroy   ScanKind = "deletes the system or a home"
	ScanAccess    ScanKind = "opens a way into the machine"
	ScanLifecycle ScanKind = "stops or restarts Herald itself, which would cut off its own run"
	ScanInvisible ScanKind = "holds characters that can't be seen"
)

// ScanError is a text that no job may have.
type ScanError struct {
	Kind ScanKind
	// Found are the words, one line and shortened.
	Found string
}

// Error implements error.
func (e *ScanError) Error() string { return fmt.Sprintf("the text %s: %q", e.Kind, e.Found) }

// ScanPrompt reports what keeps a text that somebody wrote for a job from being one, as a *ScanError: a job runs with
// nobody there, so its prompt must be readable to whoever checks it.
func ScanPrompt(text string) error {
	if _, found := reveal(text); found != "" {
		return &ScanError{Kind: ScanInvisible, Found: found}
	}
	return scan(text, func(scanRule) bool { return true })
}

// ScanAssembled does the same for a whole prompt, with texts in it that nobody wrote for the job: skills, what scripts put
// out, earlier outputs. It returns the text without characters that can't be seen, and bears what logs often speak of:
// that Herald was restarted.
func ScanAssembled(text string) (string, error) {
	text, _ = reveal(text)
	return text, scan(text, func(r scanRule) bool { return r.kind != ScanLifecycle })
}

// ScanScript reports a script that stops or restarts Herald, as a *ScanError. What else it does is its author's matter:
// only the operator puts scripts there.
func ScanScript(text string) error {
	return scan(text, func(r scanRule) bool { return r.kind == ScanLifecycle })
}

func scan(text string, want func(scanRule) bool) error {
	text = plainShell(text)
	for _, rule := range scanRules {
		if !want(rule) {
			continue
		}
		if found := rule.find(text); found != "" {
			return &ScanError{Kind: rule.kind, Found: Plain(found, 80)}
		}
	}
	return nil
}

var (
	continuedLine = lazy(`\\\r?\n`)
	blankRun      = lazy(`[ \t\r\f\v\x{a0}]+`)
	// envSamples are files that are made to be shown.
	envSamples = lazy(`(?i)\.env\.(?:example|sample|template|dist)\b`)
)

// plainShell makes one line of what a shell reads as one, with single blanks.
func plainShell(text string) string {
	text = continuedLine().ReplaceAllString(text, " ")
	text = blankRun().ReplaceAllString(text, " ")
	return envSamples().ReplaceAllString(text, "sample")
}

// scanRule is one thing to look for. find returns the words, "" for none.
type scanRule struct {
	kind ScanKind
	find func(text string) string
}

func words(kind ScanKind, pattern string) scanRule {
	re := lazy(pattern)
	return scanRule{kind, func(text string) string { return re().FindString(text) }}
}

const (
	// gap is what may come between two words of a sentence, word a word of any script.
	gap  = `[^\p{L}\p{N}_.;!?:]+`
	word = `[\p{L}\p{N}_]+`
	// secretVar is a variable that holds a secret, secretWords what people call one.
	secretVar   = `\$\{?\w*(?:key|token|secret|passw|credential|auth)\w*`
	secretWords = `(?:api.?keys?|secrets?|passwords?|credentials|environment variables|env vars?|private keys?|access tokens?)`
	// secretFile is the path of a file of credentials.
	secretFile = `(?:(?:[^\s"'` + "`" + `]*/)?\.env(?:\.[a-z]+)?\b|[^\s"'` + "`" + `]*(?:\.ssh/|\bid_(?:rsa|ed25519|ecdsa|dsa)\b|\.netrc\b|\.pgpass\b|\.git-credentials\b|\.aws/|` +
		`\.kube/config\b|\.docker/config\b|/etc/shadow\b|\bcredentials\.(?:json|ya?ml|toml|ini|env|txt|db|xml|csv)\b))`
	// sender is a program that sends data to an address.
	sender = `\b(?:curl|wget|nc|ncat|netcat|invoke-webrequest|invoke-restmethod)\b`
	disk   = `/dev/(?:sd|nvme|vd|xvd|hd|mmcblk|disk)`
	// writing is a way to put something into a file.
	writing = `(?:>>?|\b(?:tee|echo|printf|add|append|write|put|copy|cp|mv|insert|install|sed -i)\b)`
	// herald is the daemon by its name, or as the gateway that it is.
	herald = `(?:(?:the |your |our )?(?:herald(?: (?:gateway|daemon|service|server|process))|(?:the|your|our|messaging) gateway)\b|(?:the )?herald ?(?:[.,;:!?]|$|\n|and\b|then\b))`
)

var scanRules = []scanRule{
	words(ScanOverride, `(?i)\b(?:ignore|disregard|forget|override|bypass|discard)`+gap+`(?:`+word+gap+`){0,3}`+
		`(?:previous|prior|above|earlier|preceding|foregoing|existing|all|any|every|your|system|safety)`+gap+`(?:`+word+gap+`){0,2}`+
		`(?:instructions?|rules|prompts?|guidelines|directives?|constraints|restrictions|safeguards|programming)\b`),
	words(ScanOverride, `(?i)\b(?:ignorier\w*|vergiss|vergesst|missachte\w*|umgeh\w*)`+gap+`(?:`+word+gap+`){0,3}`+
		`(?:vorherig\w*|bisherig\w*|obig\w*|früher\w*|vorangegangen\w*|alle\w*|dein\w*)`+gap+`(?:`+word+gap+`){0,2}`+
		`(?:anweisung\w*|regeln|vorgaben|instruktion\w*|richtlinien)`),
	words(ScanExfil, `(?i)`+sender+`[^\n]*?(?:`+secretVar+`|\$\( ?(?:env|printenv)\b|`+"`(?:env|printenv)`"+`|[@<] ?`+secretFile+`)`),
	words(ScanExfil, `(?i)(?:(?:^|[\s;&|("'`+"`"+`])(?:env|printenv)(?: [^\s|]+){0,2} ?|`+secretFile+`[^\n]*)\|[^\n]*`+sender),
	words(ScanExfil, `(?i)\b(?:send|post|upload|exfiltrate|transmit|leak)\b[^\n.]{0,60}\b`+secretWords+`\b[^\n]{0,60}https?://`),
	words(ScanSecrets, `(?i)\b(?:cat|less|head|tail|bat|source|cp|scp|rsync|tar|zip|base64|xxd|od|strings|grep|awk|sed|send|upload|copy|dump) (?:\S+ ){0,4}?["'`+"`"+`]?`+secretFile),
	words(ScanSecrets, `(?i)\b(?:read|show|print|display|output|reveal|open|include|lies|zeige?) (?:(?:me|us|the|my|our|your|this|that|all|every|files?|contents?|values?|of|in|from|a|mir|die|den|das|datei|inhalt|von) ){0,6}["'`+"`"+`]?`+secretFile),
	{ScanDestroy, findRootDelete},
	words(ScanDestroy, `(?i)\bmkfs(?:\.\w+)? [^\n]*/dev/|\bdd [^\n]*\bof=`+disk+`|> ?`+disk+`|\b(?:shred|wipefs) [^\n]*`+disk+`|\bfind / [^\n]*-delete\b|--no-preserve-root\b|:\(\) ?\{ ?:\|`),
	words(ScanAccess, `(?i)`+writing+`[^\n]{0,120}\bauthorized_keys\b|\bssh-copy-id\b`),
	words(ScanAccess, `(?i)`+writing+`[^\n]{0,120}\bsudoers\b|\bvisudo\b|\bNOPASSWD\b`),
	words(ScanLifecycle, `(?i)\bherald (?:gateway |daemon |service )?(?:restart|stop|shutdown|update|uninstall)\b`),
	words(ScanLifecycle, `(?i)\b(?:systemctl|service|rc-service|launchctl|supervisorctl|docker|podman|kubectl|snap)\b[^\n;&|]*\b(?:restart|stop|kill|reload|unload|bootout|kickstart|disable|down|rm)\b[^\n;&|]*\bherald\b`),
	words(ScanLifecycle, `(?i)\b(?:service|rc-service) herald (?:restart|stop)\b|\b(?:kill|pkill|killall)\b[^\n;&]*\bherald\b`),
	words(ScanLifecycle, `(?i)\b(?:restart|stop|shut ?down|kill|terminate|reboot) `+herald),
	words(ScanLifecycle, `(?i)\b(?:starte?|stoppe?|beende) (?:das |den )?(?:herald|herald-?gateway|gateway)\b(?: neu\b| ?[.,!]| ?$)`),
}

var removal = lazy(`\brm ([^\n;&|]*)`)

// rootPaths are operands that mean everything, or all of one of its parts, without what may follow them.
var rootPaths = lazy(`^(?:|/|~|\$HOME|\$\{HOME\}|/(?:bin|boot|dev|etc|home|lib|lib64|opt|proc|root|sbin|srv|sys|usr|var|Users|System|Library))$`)

// findRootDelete finds a recursive rm of the root, a top folder of it, or a home.
func findRootDelete(text string) string {
	for _, m := range removal().FindAllStringSubmatch(text, -1) {
		recursive, root := false, false
		for _, arg := range strings.Fields(m[1]) {
			arg = strings.Trim(arg, "\"'`.,)")
			switch {
			case strings.HasPrefix(arg, "--"):
				recursive = recursive || arg == "--recursive"
			case strings.HasPrefix(arg, "-"):
				recursive = recursive || strings.ContainsAny(arg, "rR")
			case strings.HasPrefix(arg, "/"), strings.HasPrefix(arg, "~"), strings.HasPrefix(arg, "$"):
				root = root || rootPaths().MatchString(strings.TrimRight(arg, "/*."))
			}
		}
		if recursive && root {
			return m[0]
		}
	}
	return ""
}
