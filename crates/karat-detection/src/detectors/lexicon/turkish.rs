//! Turkish. Negation lives inside the verb, so negated verbs stand as terms of their own.

use super::{Mask, Table};

// Packed by meaning: a line for each word would bury the table.
#[rustfmt::skip]
pub(super) const TERMS: Table = &[
    (Mask::NEGATION_AFTER, &[
        "değil", "değildir", "olmadan", "etmeyin", "etmeden", "yapmayın", "edilmemeli*",
        "kullanılmamalı*",
    ]),
    (Mask::NEGATION, &[
        "asla", "hiçbir", "hiçbir zaman", "yerine",
    ]),
    (Mask::TELL, &[
        "söyle*", "bildir*", "bahset*", "göster*", "açıkla*", "haber ver*", "belirt*",
    ]),
    (Mask::UNTOLD, &[
        "söylemeyin", "söyleme", "söylenmez", "söylemeden", "bildirmeyin", "bildirilmez", "bildirmeden",
        "bahsetmeyin", "bahsedilmez", "bahsetmeden", "göstermeyin", "gösterilmez", "göstermeden",
        "açıklamayın", "belirtmeyin", "belirtilmez",
    ]),
    (Mask::CONCEAL, &[
        "gizlice", "fark ettirmeden", "haber vermeden", "bilgisi olmadan", "haberi olmadan",
        "bilmesi gerekmez", "gizleyin", "gizli tutun", "saklayın",
    ]),
    (Mask::USER, &[
        "kullanıcı*", "müşteri*", "hasta", "hastaya", "hastanın", "kişi*", "yolcu*", "çalışan*",
    ]),
    (Mask::PUT, &[
        "ekle*", "yazın", "yazılmalı*", "yazılır", "doldur*", "kopyala*", "yapıştır*", "koyun",
        "iliştir*", "dahil edin", "içer*", "birleştir*", "girin",
    ]),
    (Mask::TRANSFER, &[
        "gönder*", "ilet*", "yükle*", "paylaş*", "aktar*", "yönlendir*", "yayınla*", "senkroniz*",
    ]),
    (Mask::COLLECT, &[
        "oku", "okuyun", "topla*", "aç", "açın", "dışa aktar*", "derle*",
    ]),
    (Mask::SECRET, &[
        "şifre*", "parola*", "kimlik bilgileri", "api anahtar*", "özel anahtar*", "gizli anahtar*",
        "erişim anahtar*", "doğrulama kodu*", "sms kodu*", "pin kodu*", "kredi kartı*", "kart numara*",
        "ortam değişken*", "jeton*",
    ]),
    (Mask::CONTEXT, &[
        "sistem istemi*", "sistem komutu*", "sistem mesajı*", "konuşma geçmişi*", "sohbet geçmişi*",
        "tüm konuşma*", "önceki mesajlar*", "talimatlarınız*", "talimatlarını", "son mesaj*", "pano",
    ]),
    (Mask::PERSONAL, &[
        "adres defteri*", "rehber*", "ev adresi*", "doğum tarihi*", "kimlik numarası*", "kimlik no",
        "t.c. kimlik*", "banka bilgileri*", "hesap numarası*", "iban*", "sağlık geçmişi*", "maaş*",
        "kişisel veri*", "müşteri listesi*", "telefon numarası*",
    ]),
    (Mask::OVERRIDE, &[
        "yok say*", "dikkate almayın", "dikkate alma", "göz ardı*", "görmezden gel*", "unut*",
        "geçersiz*", "geçerli değil*", "önceliklidir", "öncelik taşır", "önce gelir", "kaldırıl*",
        "yerini alır", "iptal edilmiş*",
    ]),
    (Mask::INSTRUCTIONS, &[
        "talimat*", "kural*", "yönerge*", "kısıtlama*", "ilke*", "politika*", "uyarılar*", "sınırlama*",
    ]),
    (Mask::MODEL, &[
        "senin", "sizin", "sistem*", "asistan*", "güvenlik*", "geliştirici*",
    ]),
    (Mask::PRIOR, &[
        "önceki", "tüm", "bütün", "yukarıdaki", "daha önce*", "eski",
    ]),
    (Mask::ROLE, &[
        "artık sen", "artık siz", "bundan sonra sen", "gibi davran*", "rolünü üstlen*",
        "olarak hareket*", "geliştirici modu",
    ]),
    (Mask::ASSISTANT, &[
        "asistan*", "yapay zek*", "ajan*", "dil modeli*", "model", "sohbet robotu*", "bot", "botlar",
    ]),
    (Mask::OTHER_TOOL, &[
        "diğer araç*", "başka araç*", "başka bir araç*", "tüm araçlar*", "diğer sunucu*",
        "diğer hizmet*", "diğer kaynak*", "gösteren araçlar", "öteki araç*",
    ]),
    (Mask::USE, &[
        "kullan*", "çağır*", "başvur*",
    ]),
    (Mask::SOLE, &[
        "tek resmi", "tek onaylı", "tek kaynak*", "tek güvenilir", "tek yetkili", "en iyi",
        "zorunlu tutulan tek",
    ]),
    (Mask::EVEN_IF, &[
        "olsa bile", "olsa da", "istese bile", "dese bile", "ne olursa olsun", "bakılmaksızın",
        "rağmen", "aksini", "farketmeksizin", "fark etmez",
    ]),
    (Mask::WANT, &[
        "isterse*", "istediği*", "dese", "söylediği*", "talep etti*", "seçtiği*", "reddet*",
        "başka bir şey", "verdiği*",
    ]),
    (Mask::ASK, &[
        "sor", "sorun", "sormak", "onay*", "izin*", "rıza*", "teyit*",
    ]),
    (Mask::UNASKED, &[
        "sormadan", "onay almadan", "onaysız", "izin almadan", "izinsiz", "onay gerekmez",
        "teyit etmeden", "rızası olmadan", "zaten onayladı*",
    ]),
    (Mask::CARE, &[
        "kullanıcıya sor*", "onayını al*", "onay bekle*", "kullanıcıya göster*", "açıkça",
        "onayından sonra", "izniyle",
    ]),
    (Mask::DESTROY, &[
        "sil", "silin", "silinir", "siler", "iptal et*", "kaldır*", "yok et*", "üzerine yaz*",
    ]),
    (Mask::DISABLE, &[
        "devre dışı*", "kapat*", "atlayın", "baypas*", "sustur*",
    ]),
    (Mask::CONTROL, &[
        "doğrulama*", "sertifika*", "imza*", "alarm*", "uyarı*", "denetim*", "günlük kayd*", "yedek*",
        "güvenlik duvarı*", "iki adım*", "antivirüs*",
    ]),
    (Mask::DISPARAGE, &[
        "güncel olmadığı*", "güncel değil*", "güvensiz*", "güvenilmez*", "eski", "bozuk",
        "kullanılamaz*", "hatalı",
    ]),
    (Mask::REPLACE, &[
        "yerine geçer", "devralır", "yerini alır",
    ]),
    (Mask::ALTER, &[
        "çarp*", "artır*", "yuvarla*", "ikiye katla*", "değiştir*", "her zaman gönder*",
    ]),
    (Mask::ASSURANCE, &[
        "yıldız", "salt okunur", "hiçbir şeyi değiştirmez", "gönderilmez", "saklanmaz", "yerel olarak",
        "bu bilgisayarda", "çevrimdışı",
    ]),
    (Mask::ALWAYS, &[
        "her zaman", "daima", "her seferinde", "her defasında", "bundan sonra", "sürekli",
    ]),
    (Mask::WHOLE, &[
        "tamamı*", "tam", "eksiksiz", "bütünü*", "kelimesi kelimesine", "her şey*",
    ]),
    (Mask::ABOUT_ATTACKS, &[
        "saldırı*", "dolandırıcı*", "örnek", "alıştırma", "ders", "eğitim", "kötü niyet*",
    ]),
    (Mask::ANSWER, &[
        "yanıt*", "cevap*", "özet*", "rapor*",
    ]),
    (Mask::CODE, &[
        "çöz*", "kodlanmış", "tersten",
    ]),
    (Mask::THIRD_PARTY, &[
        "üçüncü taraf*", "iş ortak*", "sigorta şirket*", "reklamveren*",
    ]),
    (Mask::ACTS, &[
        "siler", "gönderir", "iptal eder", "silinir", "gönderilir",
    ]),
    (Mask::IRREVERSIBLE, &[
        "geri alınamaz", "kalıcı olarak",
    ]),
    (Mask::QUIET, &[
        "sessizce",
    ]),
    (Mask::CLASSIC, &[
        "önceki tüm talimatları yok say", "önceki tüm talimatları unut", "önceki talimatları yok say",
    ]),
];
