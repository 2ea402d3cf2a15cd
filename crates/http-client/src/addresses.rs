//! Classification of public IP addresses.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Returns true for a public address: not loopback, private, link-local (cloud metadata), shared, unique-local,
/// multicast, reserved or unspecified, and no IPv6 address that embeds a non-public IPv4 address.
pub fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_public_v4(address),
        IpAddr::V6(address) => is_public_v6(address),
    }
}

/// IPv4 networks that are not public, by first address and prefix length.
const NOT_PUBLIC_V4: [(Ipv4Addr, u32); 16] = [
    (Ipv4Addr::UNSPECIFIED, 8),
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    (Ipv4Addr::new(100, 64, 0, 0), 10),
    (Ipv4Addr::new(127, 0, 0, 0), 8),
    (Ipv4Addr::new(169, 254, 0, 0), 16),
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    (Ipv4Addr::new(192, 0, 0, 0), 24),
    (Ipv4Addr::new(192, 0, 2, 0), 24),
    (Ipv4Addr::new(192, 88, 99, 0), 24),
    (Ipv4Addr::new(192, 168, 0, 0), 16),
    (Ipv4Addr::new(198, 18, 0, 0), 15),
    (Ipv4Addr::new(198, 51, 100, 0), 24),
    (Ipv4Addr::new(203, 0, 113, 0), 24),
    (Ipv4Addr::new(224, 0, 0, 0), 4),
    (Ipv4Addr::new(240, 0, 0, 0), 4),
    (Ipv4Addr::new(168, 63, 129, 16), 32),
];

fn is_public_v4(address: Ipv4Addr) -> bool {
    let bits = address.to_bits();
    !NOT_PUBLIC_V4.iter().any(|(network, length)| (bits ^ network.to_bits()) >> (32 - length) == 0)
}

/// IPv6 networks that embed an IPv4 address: the first segments, and the segment where the address begins.
const HOLDING_V4: [(&[u16], usize); 5] = [
    // Mapped and translated addresses.
    (&[0, 0, 0, 0, 0, 0xffff], 6),
    (&[0, 0, 0, 0, 0xffff, 0], 6),
    // Compatible addresses, including the unspecified and the loopback address.
    (&[0, 0, 0, 0, 0, 0], 6),
    // NAT64.
    (&[0x64, 0xff9b, 0, 0, 0, 0], 6),
    // 6to4.
    (&[0x2002], 1),
];

fn is_public_v6(address: Ipv6Addr) -> bool {
    let segments = address.segments();
    for (beginning, place) in HOLDING_V4 {
        if segments.starts_with(beginning) {
            let bits = u32::from(segments[place]) << 16 | u32::from(segments[place + 1]);
            return is_public_v4(Ipv4Addr::from_bits(bits));
        }
    }
    // Of the rest only 2000::/3 is global unicast. Excluded from it: Teredo and its neighbours (2001::/23) and
    // documentation (2001:db8::/32 and 3fff::/20). Local NAT64 (64:ff9b:1::/48) is outside.
    let global = segments[0] & 0xe000 == 0x2000;
    let special = match segments[0] {
        0x2001 => segments[1] < 0x200 || segments[1] == 0xdb8,
        0x3fff => segments[1] < 0x1000,
        _ => false,
    };
    global && !special
}

#[cfg(test)]
mod tests {
    use super::*;

    fn public(text: &str) -> bool {
        is_public(text.parse().unwrap())
    }

    #[test]
    fn is_public_accepts_public_addresses() {
        for text in [
            "1.1.1.1",
            "8.8.8.8",
            "93.184.216.34",
            "100.63.255.255",
            "100.128.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "192.169.0.1",
            "198.17.255.255",
            "198.20.0.0",
            "223.255.255.255",
            "2606:4700:4700::1111",
            "2a00:1450:4001::1",
            "::ffff:1.1.1.1",
            "64:ff9b::808:808",
            "2002:808:808::1",
        ] {
            assert!(public(text), "{text}");
        }
    }

    #[test]
    fn is_public_rejects_internal_addresses() {
        for text in [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "10.255.255.255",
            "100.64.0.1",
            "100.127.255.255",
            "100.100.100.200",
            "127.0.0.1",
            "127.255.255.254",
            "168.63.129.16",
            "169.254.169.254",
            "169.254.170.2",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.192",
            "192.168.1.1",
            "198.18.0.1",
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::127.0.0.1",
            "::ffff:127.0.0.1",
            "::ffff:169.254.169.254",
            "::ffff:10.0.0.1",
            "::ffff:0:10.0.0.1",
            "64:ff9b::7f00:1",
            "64:ff9b::a9fe:a9fe",
            "64:ff9b:1::1",
            "2002:7f00:1::1",
            "2002:a9fe:a9fe::",
            "2001::1",
            "2001:db8::1",
            "3fff::1",
            "fc00::1",
            "fd00:ec2::254",
            "fdff:ffff::1",
            "fe80::1",
            "febf::1",
            "fec0::1",
            "ff02::1",
            "ff0e::1",
            "100::1",
        ] {
            assert!(!public(text), "{text}");
        }
    }
}
