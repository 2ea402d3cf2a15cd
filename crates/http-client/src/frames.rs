//! Parser of HTTP/2 frame headers, to limit the bytes that a server sends beside the bodies of its answers.

use std::collections::HashMap;

/// Bytes before the payload of a frame: RFC 9113, section 4.1.
const HEADER: usize = 9;
const HEADER_BYTES: u64 = 9;
/// Frame types: RFC 9113, section 6.
const DATA: u8 = 0x0;
const HEADERS: u8 = 0x1;
const RST_STREAM: u8 = 0x3;
const PUSH_PROMISE: u8 = 0x5;
const WINDOW_UPDATE: u8 = 0x8;
const CONTINUATION: u8 = 0x9;
/// The flag of the last frame of a stream.
const END_STREAM: u8 = 0x1;

/// A server sent more than allowed before the body of its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the server sent more than {0} bytes before its answer")]
pub struct TooManyBytes(pub(crate) u64);

impl TooManyBytes {
    /// Returns the limit.
    pub fn limit(self) -> u64 {
        self.0
    }
}

/// Follows the frames of one connection.
#[derive(Debug)]
pub(crate) struct FrameCounter {
    limit: u64,
    header: [u8; HEADER],
    header_bytes: usize,
    payload_left: u64,
    in_answer: bool,
    /// Bytes of header sections per stream, until its body or its end.
    heads: HashMap<u32, u64>,
    /// Bytes of frames that belong to no answer, since the last answer ended.
    control: u64,
}

impl FrameCounter {
    /// Allows `limit` bytes of header sections for each stream, and of control frames between two answers.
    pub(crate) fn new(limit: u64) -> Self {
        Self {
            limit,
            header: [0; HEADER],
            header_bytes: 0,
            payload_left: 0,
            in_answer: false,
            heads: HashMap::new(),
            control: 0,
        }
    }

    /// Counts bytes in read order and returns how many of them belong to answers.
    ///
    /// # Errors
    /// A limit is exceeded.
    pub(crate) fn count(&mut self, mut bytes: &[u8]) -> Result<u64, TooManyBytes> {
        let mut of_answers = 0;
        while !bytes.is_empty() {
            if self.payload_left > 0 {
                let length = usize::try_from(self.payload_left).unwrap_or(usize::MAX).min(bytes.len());
                let read = u64::try_from(length).unwrap_or(u64::MAX);
                self.payload_left -= read;
                of_answers += if self.in_answer { read } else { 0 };
                bytes = &bytes[length..];
                continue;
            }
            let length = (HEADER - self.header_bytes).min(bytes.len());
            self.header[self.header_bytes..self.header_bytes + length].copy_from_slice(&bytes[..length]);
            self.header_bytes += length;
            bytes = &bytes[length..];
            if self.header_bytes == HEADER {
                self.header_bytes = 0;
                self.begin_frame()?;
                of_answers += u64::from(self.in_answer);
            }
        }
        Ok(of_answers)
    }

    fn begin_frame(&mut self) -> Result<(), TooManyBytes> {
        let [high, middle, low, kind, flags, stream @ ..] = self.header;
        let payload = u64::from(u32::from_be_bytes([0, high, middle, low]));
        let stream = u32::from_be_bytes(stream) & 0x7fff_ffff;
        let frame = payload + HEADER_BYTES;
        self.payload_left = payload;
        self.in_answer = matches!(kind, DATA | HEADERS | CONTINUATION);
        let counted = match kind {
            HEADERS | CONTINUATION | PUSH_PROMISE => {
                let head = self.heads.entry(stream).or_default();
                *head += frame;
                *head
            }
            DATA if payload > 0 => 0,
            // A long request body needs many of these frames; the window size bounds their sum.
            WINDOW_UPDATE => return Ok(()),
            _ => {
                self.control += frame;
                self.control
            }
        };
        if kind == DATA && payload > 0 || kind == RST_STREAM {
            self.heads.remove(&stream);
        }
        if matches!(kind, DATA | HEADERS) && flags & END_STREAM != 0 {
            self.heads.remove(&stream);
            self.control = 0;
        }
        if counted > self.limit { Err(TooManyBytes(self.limit)) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PING: u8 = 0x6;

    fn frame(kind: u8, flags: u8, stream: u32, payload: usize) -> Vec<u8> {
        let length = u32::try_from(payload).unwrap().to_be_bytes();
        let mut frame = vec![length[1], length[2], length[3], kind, flags];
        frame.extend(stream.to_be_bytes());
        frame.resize(HEADER + payload, b'x');
        frame
    }

    #[test]
    fn count_returns_answer_bytes_however_the_input_is_cut() {
        let mut bytes = frame(0x4, 0, 0, 18);
        bytes.extend(frame(HEADERS, 0x4, 1, 30));
        bytes.extend(frame(PING, 0, 0, 8));
        bytes.extend(frame(DATA, END_STREAM, 1, 100));
        for size in [1, 2, 7, 9, 10, 50, 1000] {
            let mut frames = FrameCounter::new(1000);
            let counted: u64 = bytes.chunks(size).map(|chunk| frames.count(chunk).unwrap()).sum();
            assert_eq!(counted, 30 + 100 + 2, "the payloads and one byte for each header, in chunks of {size}");
        }
    }

    #[test]
    fn count_fails_above_the_limit_of_one_stream_only() {
        let mut frames = FrameCounter::new(100);
        for stream in [1, 3, 5, 7] {
            frames.count(&frame(HEADERS, 0x4, stream, 41)).unwrap();
            frames.count(&frame(HEADERS, 0x4, stream, 41)).unwrap();
        }
        assert!(frames.count(&frame(CONTINUATION, 0x4, 5, 1)).is_err());
    }

    #[test]
    fn count_resets_stream_at_body_or_end() {
        let mut frames = FrameCounter::new(100);
        for (kind, flags) in [(DATA, 0), (DATA, END_STREAM), (HEADERS, END_STREAM), (RST_STREAM, 0)] {
            frames.count(&frame(HEADERS, 0x4, 1, 70)).unwrap();
            frames.count(&frame(kind, flags, 1, 4)).unwrap();
            assert!(frames.heads.is_empty(), "{kind} {flags}");
        }
    }

    #[test]
    fn count_limits_control_frames_between_answers() {
        let mut frames = FrameCounter::new(100);
        for _ in 0..10 {
            for _ in 0..5 {
                frames.count(&frame(PING, 0, 0, 8)).unwrap();
            }
            frames.count(&frame(DATA, END_STREAM, 1, 1)).unwrap();
        }
        let flood = |kind, flags, payload| {
            let mut frames = FrameCounter::new(100);
            (0..100).find(|_| frames.count(&frame(kind, flags, 1, payload)).is_err())
        };
        assert_eq!(flood(PING, 0, 8), Some(5));
        assert_eq!(flood(DATA, 0, 0), Some(11), "empty frames carry nothing");
        assert_eq!(flood(DATA, 0, 1), None);
        assert_eq!(flood(WINDOW_UPDATE, 0, 4), None);
    }
}
