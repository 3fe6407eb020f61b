package encoded

import "bytes"

// signature is what a format begins with, at a place.
type signature struct {
	at   int
	text string
	name string
}

// media are the formats whose content is picture, sound or font: the only text
// in them is between other bytes.
var media = [...]signature{
	{0, "\x89PNG\r\n\x1a\n", "PNG"},
	{0, "\xff\xd8\xff", "JPEG"},
	{0, "GIF87a", "GIF"},
	{0, "GIF89a", "GIF"},
	{8, "WEBP", "WebP"},
	{8, "WAVE", "WAV"},
	{8, "AVI ", "AVI"},
	{4, "ftyp", "MP4"},
	{0, "OggS", "Ogg"},
	{0, "ID3", "MP3"},
	{0, "\xff\xfb", "MP3"},
	{0, "fLaC", "FLAC"},
	{0, "\x1a\x45\xdf\xa3", "Matroska"},
	{0, "II*\x00", "TIFF"},
	{0, "MM\x00*", "TIFF"},
	{0, "wOF2", "WOFF2"},
	{0, "\x00\x01\x00\x00\x00", "TrueType"},
	{0, "\x00\x00\x01\x00", "icon"},
}

// FindMedium returns the name of the medium that b begins as, or "".
func FindMedium(b []byte) string {
	for i := range media {
		if s := &media[i]; len(b) > s.at && bytes.HasPrefix(b[s.at:], []byte(s.text)) {
			return s.name
		}
	}
	return ""
}
