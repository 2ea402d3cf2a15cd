//! The objects of the store in a folder, corrected where a file system differs from an object store.

use std::path::{Path, PathBuf};

use s3s::dto::{
    AbortMultipartUploadInput, AbortMultipartUploadOutput, CompleteMultipartUploadInput, CompleteMultipartUploadOutput,
    CopyObjectInput, CopyObjectOutput, CopySource, CreateBucketInput, CreateBucketOutput, CreateMultipartUploadInput,
    CreateMultipartUploadOutput, DeleteObjectInput, DeleteObjectOutput, GetObjectInput, GetObjectOutput,
    HeadObjectInput, HeadObjectOutput, ListObjectsV2Input, ListObjectsV2Output, PutObjectInput, PutObjectOutput,
    UploadPartInput, UploadPartOutput,
};
use s3s::{S3, S3Request, S3Response, S3Result, s3_error};
use s3s_fs::FileSystem;

/// The folder of all buckets.
pub(crate) struct Files {
    pub(crate) files: FileSystem,
    pub(crate) root: PathBuf,
}

impl Files {
    fn require_bucket(&self, bucket: &str) -> S3Result<PathBuf> {
        let folder = self.root.join(bucket);
        if folder.is_dir() { Ok(folder) } else { Err(s3_error!(NoSuchBucket)) }
    }

    /// A folder, and a name below a file, are no objects.
    fn require_object(&self, bucket: &str, key: &str) -> S3Result<()> {
        let path = self.require_bucket(bucket)?.join(key);
        if is_file(&path) { Ok(()) } else { Err(s3_error!(NoSuchKey)) }
    }
}

fn is_file(path: &Path) -> bool {
    path.metadata().is_ok_and(|metadata| metadata.is_file())
}

#[async_trait::async_trait]
impl S3 for Files {
    async fn create_bucket(&self, req: S3Request<CreateBucketInput>) -> S3Result<S3Response<CreateBucketOutput>> {
        self.files.create_bucket(req).await
    }

    async fn head_object(&self, req: S3Request<HeadObjectInput>) -> S3Result<S3Response<HeadObjectOutput>> {
        self.require_object(&req.input.bucket, &req.input.key)?;
        self.files.head_object(req).await
    }

    async fn get_object(&self, req: S3Request<GetObjectInput>) -> S3Result<S3Response<GetObjectOutput>> {
        self.require_object(&req.input.bucket, &req.input.key)?;
        self.files.get_object(req).await
    }

    async fn copy_object(&self, req: S3Request<CopyObjectInput>) -> S3Result<S3Response<CopyObjectOutput>> {
        if let CopySource::Bucket { bucket, key, .. } = &req.input.copy_source {
            self.require_object(bucket, key)?;
        }
        self.files.copy_object(req).await
    }

    async fn delete_object(&self, req: S3Request<DeleteObjectInput>) -> S3Result<S3Response<DeleteObjectOutput>> {
        self.require_bucket(&req.input.bucket)?;
        match self.require_object(&req.input.bucket, &req.input.key) {
            Ok(()) => self.files.delete_object(req).await,
            Err(_) => Ok(S3Response::new(DeleteObjectOutput::default())),
        }
    }

    async fn put_object(&self, req: S3Request<PutObjectInput>) -> S3Result<S3Response<PutObjectOutput>> {
        self.require_bucket(&req.input.bucket)?;
        self.files.put_object(req).await
    }

    async fn list_objects_v2(&self, req: S3Request<ListObjectsV2Input>) -> S3Result<S3Response<ListObjectsV2Output>> {
        self.files.list_objects_v2(req).await
    }

    async fn create_multipart_upload(
        &self,
        req: S3Request<CreateMultipartUploadInput>,
    ) -> S3Result<S3Response<CreateMultipartUploadOutput>> {
        self.require_bucket(&req.input.bucket)?;
        self.files.create_multipart_upload(req).await
    }

    async fn upload_part(&self, req: S3Request<UploadPartInput>) -> S3Result<S3Response<UploadPartOutput>> {
        self.files.upload_part(req).await
    }

    async fn complete_multipart_upload(
        &self,
        req: S3Request<CompleteMultipartUploadInput>,
    ) -> S3Result<S3Response<CompleteMultipartUploadOutput>> {
        self.files.complete_multipart_upload(req).await
    }

    async fn abort_multipart_upload(
        &self,
        req: S3Request<AbortMultipartUploadInput>,
    ) -> S3Result<S3Response<AbortMultipartUploadOutput>> {
        self.files.abort_multipart_upload(req).await
    }
}
