package locales

import "strings"

// Resolve returns the catalog name that a language's tag or name stands for, such as "de" for "de-AT", "de_CH.UTF-8",
// "German" and "Deutsch". Upper case and white space make no difference. What it does not know is English.
func Resolve(name string) string {
	n := strings.ToLower(strings.TrimSpace(name))
	n, _, _ = strings.Cut(n, ".") // de_DE.UTF-8
	n, _, _ = strings.Cut(n, "@")
	n = strings.ReplaceAll(n, "_", "-")
	for n != "" {
		if lang, ok := alias(n); ok {
			return lang
		}
		i := strings.LastIndexByte(n, '-')
		if i < 0 {
			break
		}
		n = n[:i]
	}
	return Source
}

// alias knows the tags and names of the languages that Herald has or is to have.
func alias(n string) (string, bool) {
	switch n {
	case "en", "english", "eng":
		return "en", true
	case "zh", "zh-cn", "zh-sg", "zh-hans", "cn", "chinese", "simplified chinese", "chinese simplified", "中文", "简体中文", "汉语":
		return "zh", true
	case "zh-hant", "zh-tw", "zh-hk", "zh-mo", "tw", "traditional chinese", "chinese traditional", "繁體中文", "繁体中文", "正體中文":
		return "zh-hant", true
	case "ja", "jp", "japanese", "日本語", "jpn":
		return "ja", true
	case "de", "german", "deutsch", "deu", "ger":
		return "de", true
	case "es", "spanish", "español", "espanol", "castellano", "spa":
		return "es", true
	case "fr", "french", "français", "francais", "fra", "fre":
		return "fr", true
	case "tr", "turkish", "türkçe", "turkce", "tur":
		return "tr", true
	case "uk", "ua", "ukrainian", "українська", "ukr":
		return "uk", true
	case "af", "afrikaans", "afr":
		return "af", true
	case "ko", "kr", "korean", "한국어", "kor":
		return "ko", true
	case "it", "italian", "italiano", "ita":
		return "it", true
	case "ga", "irish", "gaeilge", "gle":
		return "ga", true
	case "pt", "br", "portuguese", "português", "portugues", "por":
		return "pt", true
	case "ru", "russian", "русский", "rus":
		return "ru", true
	case "hu", "hungarian", "magyar", "hun":
		return "hu", true
	case "ar", "arabic", "العربية", "ara":
		return "ar", true
	}
	return "", false
}
