//! Whether a file that says it is an ELF image is all there: the dynamic linker maps a truncated one and dies of it.

/// What is wrong with the image, `None` if everything that its headers name lies inside the file. A file that is no ELF
/// image at all is an error only where one is needed.
pub(crate) fn fault(file: &[u8], must_be_elf: bool) -> Option<String> {
    if file.is_empty() {
        return Some("the file is empty".to_owned());
    }
    if !file.starts_with(b"\x7fELF") {
        return must_be_elf.then(|| "not a shared library (no ELF header)".to_owned());
    }
    let truncated = |end: u64| Some(format!("truncated: {} bytes of at least {end}", file.len()));
    let Some(header) = file.first_chunk::<64>() else { return truncated(64) };
    if header[4] != 2 || header[5] != 1 {
        return Some("not a 64-bit little-endian ELF image".to_owned());
    }
    let (program_at, section_at) = (u64_at(header, 32), u64_at(header, 40));
    let (program_size, program_count) = (u16_at(header, 54), u16_at(header, 56));
    let (section_size, section_count) = (u16_at(header, 58), u16_at(header, 60));
    let length = file.len() as u64;
    let table_end = |at: u64, size: u16, count: u16| at.saturating_add(u64::from(size) * u64::from(count));
    let end = table_end(program_at, program_size, program_count);
    if end > length {
        return truncated(end);
    }
    let end = table_end(section_at, section_size, section_count);
    if section_count > 0 && end > length {
        return truncated(end);
    }
    for index in 0..usize::from(program_count) {
        let entry = &file[program_at as usize + index * usize::from(program_size)..];
        let Some(entry) = entry.first_chunk::<56>() else { return truncated(length.saturating_add(56)) };
        let end = u64_at(entry, 8).saturating_add(u64_at(entry, 32));
        if end > length {
            return truncated(end);
        }
    }
    None
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    bytes[at..].first_chunk().map_or(0, |word| u16::from_le_bytes(*word))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes[at..].first_chunk().map_or(0, |word| u64::from_le_bytes(*word))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// This test program is an ELF image with everything that one can have.
    #[test]
    fn an_image_that_is_cut_off_anywhere_is_truncated() {
        let image = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        assert_eq!(fault(&image, true), None);
        for length in [4, 63, 64, 100, image.len() / 2, image.len() - 1] {
            assert!(fault(&image[..length], true).unwrap().starts_with("truncated"), "{length}");
        }
        for at in 4..64 {
            let mut changed = image.clone();
            changed[at] = 0xff;
            fault(&changed, true);
        }
    }

    #[test]
    fn a_file_that_is_no_image_is_refused_where_one_is_needed() {
        assert!(fault(b"", false).is_some());
        assert_eq!(fault(b"kernel", false), None);
        assert!(fault(b"kernel", true).is_some());
    }
}
