package text

// Some scripts have several letters for one sound of the languages of today, and writers use one for the other.
//
// Amharic has inherited letters of Ge'ez whose sounds have become equal: ዓለም and አለም, ሠላም and ሰላም, ኃይል and ሀይል, ፀሐይ and ጸሀይ. The first
// and the fourth vowel sound alike behind h and behind the glottal stop. Tigrinya distinguishes some of these letters. Its words find
// those with the other letter, too, but what is spelled like the query comes first among documents of equal rank.

// ethiopicRows are rows of eight letters, one for each vowel, that sound like another row.
var ethiopicRows = [...]struct{ row, sound rune }{{'ሐ', 'ሀ'}, {'ኀ', 'ሀ'}, {'ሠ', 'ሰ'}, {'ዐ', 'አ'}, {'ፀ', 'ጸ'}}

// ethiopicSound returns the letter that stands for all letters with the sound of an Ethiopic one. It returns other characters unchanged.
func ethiopicSound(r rune) rune {
	if r < 0x1200 || r > 0x137f {
		return r
	}
	row, vowel := r&^7, r&7
	for _, e := range ethiopicRows {
		if row == e.row && vowel < 7 {
			row = e.sound
			break
		}
	}
	if vowel == 3 && (row == 'ሀ' || row == 'አ') {
		vowel = 0
	}
	return row + vowel
}

// tamilSha is hardly used apart from the title ஶ்ரீ, whose usual spelling has tamilSa. Fonts show both alike.
const tamilSha, tamilSa = 'ஶ', 'ஸ'

// tamilSound returns tamilSa for tamilSha, and other characters unchanged.
func tamilSound(r rune) rune {
	if r == tamilSha {
		return tamilSa
	}
	return r
}
