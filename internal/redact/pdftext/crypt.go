package pdftext

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/md5"
	"crypto/rc4"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/binary"
)

// crypt decrypts a document whose user password is empty.
type crypt struct {
	key              []byte
	streams, strings cryptMethod
	hasMetadata      bool // metadata are encrypted too
}

type cryptMethod uint8

const (
	cryptNone cryptMethod = iota
	cryptRC4
	cryptAES128
	cryptAES256
)

// padding replaces a password that is missing.
var padding = []byte("\x28\xbf\x4e\x5e\x4e\x75\x8a\x41\x64\x00\x4e\x56\xff\xfa\x01\x08" +
	"\x2e\x2e\x00\xb6\xd0\x68\x3e\x80\x2f\x0c\xa9\xfe\x64\x53\x69\x7a")

// openCrypt prepares decryption if a trailer says that the document is encrypted, and decrypts all strings. It
// panics with Encrypted if a password is needed.
func (r *reader) openCrypt(trailer dict) bool {
	d := r.dictOf(trailer["Encrypt"])
	if d == nil {
		return false
	}
	own := r.objectOf(trailer["Encrypt"])
	revision := int(r.numberOf(d["R"], 0))
	c := &crypt{hasMetadata: r.followRefs(d["EncryptMetadata"]) != false}
	size := int(min(max(r.numberOf(d["Length"], 40)/8, 5), 16))
	switch version := r.numberOf(d["V"], 0); version {
	case 1:
		size, c.streams, c.strings = 5, cryptRC4, cryptRC4
	case 2, 3:
		c.streams, c.strings = cryptRC4, cryptRC4
	case 4, 5:
		if size = 16; version == 5 {
			size = 32
		}
		c.streams, c.strings = r.methodOf(d, "StmF"), r.methodOf(d, "StrF")
	default:
		panic(Encrypted)
	}
	if r.nameOf(d["Filter"]) != "Standard" {
		panic(Encrypted)
	}
	switch {
	case size == 32 && revision >= 5:
		c.key = r.deriveKey256(d, revision)
	case size <= 16 && revision < 5:
		c.key = r.deriveKey(d, r.listOf(trailer["ID"]), revision, size, c.hasMetadata)
	}
	if c.key == nil {
		panic(Encrypted)
	}
	r.crypt = c
	for _, o := range r.list {
		if o != own && !o.isType("XRef") {
			o.value = r.decryptStrings(o.value, o.ref)
		}
	}
	return true
}

// methodOf returns the method that the filter for streams or strings names.
func (r *reader) methodOf(d dict, key name) cryptMethod {
	filter := r.nameOf(d[key])
	if filter == "" || filter == "Identity" {
		return cryptNone
	}
	switch r.nameOf(r.dictOf(r.dictOf(d["CF"])[filter])["CFM"]) {
	case "V2":
		return cryptRC4
	case "AESV2":
		return cryptAES128
	case "AESV3":
		return cryptAES256
	case "None":
		return cryptNone
	}
	panic(Encrypted)
}

func (r *reader) textOf(v any) []byte {
	s, _ := r.followRefs(v).(text)
	return s
}

// deriveKey returns the key of revisions 2 to 4 for the empty password, nil if that is wrong.
func (r *reader) deriveKey(d dict, id list, revision, size int, hasMetadata bool) []byte {
	var first []byte
	if len(id) > 0 {
		first = r.textOf(id[0])
	}
	owner, user := r.textOf(d["O"]), r.textOf(d["U"])
	if len(owner) < 32 || len(user) < 16 {
		return nil
	}
	h := md5.New()
	h.Write(padding)
	h.Write(owner[:32])
	h.Write(binary.LittleEndian.AppendUint32(nil, uint32(int64(r.numberOf(d["P"], 0)))))
	h.Write(first)
	if revision >= 4 && !hasMetadata {
		h.Write([]byte{0xff, 0xff, 0xff, 0xff})
	}
	key := h.Sum(nil)
	if revision >= 3 {
		for range 50 {
			sum := md5.Sum(key[:size])
			key = sum[:]
		}
	}
	key = key[:size]
	if revision == 2 {
		if bytes.Equal(applyRC4(key, padding), user[:min(32, len(user))]) {
			return key
		}
		return nil
	}
	sum := md5.Sum(append(bytes.Clone(padding), first...))
	check := sum[:]
	for i := range 20 {
		turn := bytes.Clone(key)
		for k := range turn {
			turn[k] ^= byte(i)
		}
		check = applyRC4(turn, check)
	}
	if bytes.Equal(check, user[:16]) {
		return key
	}
	return nil
}

// deriveKey256 returns the key of revisions 5 and 6.
func (r *reader) deriveKey256(d dict, revision int) []byte {
	user, wrapped := r.textOf(d["U"]), r.textOf(d["UE"])
	if len(user) < 48 || len(wrapped) < 32 || !bytes.Equal(hashEmpty(user[32:40], revision), user[:32]) {
		return nil
	}
	block, err := aes.NewCipher(hashEmpty(user[40:48], revision))
	if err != nil {
		return nil
	}
	key := make([]byte, 32)
	cipher.NewCBCDecrypter(block, make([]byte, 16)).CryptBlocks(key, wrapped[:32])
	return key
}

// hashEmpty is the hash of the empty password with a salt.
func hashEmpty(salt []byte, revision int) []byte {
	sum := sha256.Sum256(salt)
	key := sum[:]
	if revision < 6 {
		return key
	}
	for i := 0; ; i++ {
		in := bytes.Repeat(key, 64)
		block, err := aes.NewCipher(key[:16])
		if err != nil {
			return nil
		}
		cipher.NewCBCEncrypter(block, key[16:32]).CryptBlocks(in, in)
		rest := 0
		for _, c := range in[:16] {
			rest += int(c)
		}
		switch rest % 3 {
		case 0:
			sum := sha256.Sum256(in)
			key = sum[:]
		case 1:
			sum := sha512.Sum384(in)
			key = sum[:]
		default:
			sum := sha512.Sum512(in)
			key = sum[:]
		}
		if i >= 63 && (int(in[len(in)-1]) <= i-31 || i > 400) {
			return key[:32]
		}
	}
}

func applyRC4(key, b []byte) []byte {
	out := make([]byte, len(b))
	if c, err := rc4.NewCipher(key); err == nil {
		c.XORKeyStream(out, b)
	}
	return out
}

// decryptBytes returns b, which belongs to an object, decrypted.
func (c *crypt) decryptBytes(of ref, b []byte, m cryptMethod) []byte {
	if m == cryptNone {
		return b
	}
	key := c.key
	if m != cryptAES256 {
		seed := append(bytes.Clone(key), byte(of.number), byte(of.number>>8), byte(of.number>>16),
			byte(of.generation), byte(of.generation>>8))
		if m == cryptAES128 {
			seed = append(seed, "sAlT"...)
		}
		sum := md5.Sum(seed)
		key = sum[:min(len(key)+5, 16)]
	}
	if m == cryptRC4 {
		return applyRC4(key, b)
	}
	block, err := aes.NewCipher(key)
	if err != nil || len(b) < 32 {
		return nil
	}
	out := make([]byte, (len(b)-16)/16*16)
	cipher.NewCBCDecrypter(block, b[:16]).CryptBlocks(out, b[16:16+len(out)])
	if n := int(out[len(out)-1]); n >= 1 && n <= 16 {
		out = out[:len(out)-n]
	}
	return out
}

// decryptStrings decrypts the strings of an object.
func (r *reader) decryptStrings(v any, of ref) any {
	switch v := v.(type) {
	case text:
		r.spendSteps(len(v) + 64)
		return text(r.crypt.decryptBytes(of, v, r.crypt.strings))
	case list:
		for i := range v {
			v[i] = r.decryptStrings(v[i], of)
		}
	case dict:
		for k := range v {
			v[k] = r.decryptStrings(v[k], of)
		}
	}
	return v
}
